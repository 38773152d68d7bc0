-- Gives back a hold of a read/write lock of Redisson's layout, if this owner has one. Readers that
-- stay have the lock for as long as the longest of their holds lasts. If none stays, one waiter of
-- each client is told after a reader, and all after a writer, as Redisson does.
--
-- KEYS  1 the lock   2 the channel of its waiters   3 a latch, as redisson_release.lua has it
-- ARGV  1 the owner's id   2 how what it says of itself begins if it is to be left alone; empty:
--         anything   3 the command that publishes   4 for how many ms the latch is kept
-- Gives 1 released; 0 nobody has it, or the owner's hold has ended; -1 others have it.
-- Cost  8 commands, two for a latch, and one for each hold of the readers that stay.
local lock, channel, latch = KEYS[1], KEYS[2], KEYS[3]
local call = redis.call
-- include parts/redisson_holds.lua
local answered = latch and call('GET', latch)
if answered then
  return tonumber(answered)
end
local id = string.sub(ARGV[1], 1, 32)
local field, hold, mode = find_hold(lock, id)
if not field then
  return hold
end
local text = call('GET', hold)
if text and ARGV[2] ~= '' and string.sub(text, 1, #ARGV[2] + 1) == ARGV[2] .. ';' then
  return -1
end
local wrote = field ~= id
local function free()
  call('DEL', lock)
  redis.pcall(ARGV[3], channel, wrote and '1' or '0')
end
call('DEL', hold)
call('HDEL', lock, field)
local longest = call('HLEN', lock) > 1 and longest_hold(lock)
if longest then
  if wrote then
    call('HSET', lock, 'mode', 'read')
  end
  call('PEXPIRE', lock, longest)
elseif wrote or mode == 'read' then
  free()
end
if latch then
  call('SET', latch, text and 1 or 0, 'PX', ARGV[4])
end
return text and 1 or 0
