-- Gives back a fair lock of Redisson's layout, if this owner has it, and takes a waiter out of the
-- queue, if it is in there. If nobody has the lock then, the first waiter is told.
--
-- KEYS  1 the lock   2 the queue   3 until when each waiter keeps its place   4 a latch, as
--         redisson_release.lua has it
-- ARGV  1 what the owner's field begins with: the owner's id   2 what it begins with if the lock
--         is to be left alone; empty: nothing   3 the waiter's entry; empty: none   4 the
--         command that publishes   5 the channel of the first waiter, less ":<entry>"   6 for how
--         many ms the latch is kept
-- Gives 1 released; 0 nobody has it; -1 another does.
-- Cost  7 commands, two for a latch; to leave the queue, one for each waiter behind in addition.
local lock, queue, places, latch = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local entry = ARGV[3]
local call = redis.call
-- include parts/redisson_owner.lua
-- include parts/redisson_queue.lua
local answered = latch and call('GET', latch)
if answered then
  return tonumber(answered)
end
local held = owner_of(lock)
local said = 0
if held then
  local mine = is_of(held, ARGV[1]) and (ARGV[2] == '' or not is_of(held, ARGV[2]))
  said = mine and call('DEL', lock) or -1
end
if entry ~= '' and call('ZREM', places, entry) == 1 then
  local all, behind = call('LRANGE', queue, 0, -1), {}
  for i = #all, 1, -1 do
    if all[i] == entry then
      break
    end
    behind[#behind + 1] = all[i]
  end
  take_off(places, behind, own_time(entry))
  call('LREM', queue, 0, entry)
end
if said ~= -1 then
  tell_first(queue, places, ARGV[5], ARGV[4])
end
if latch and said == 1 then
  call('SET', latch, 1, 'PX', ARGV[6])
end
return said
