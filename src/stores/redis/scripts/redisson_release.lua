-- Gives back a lock of Redisson's layout, if this owner has it, and tells one waiter of each client
-- that listens. Never touches anybody else's.
--
-- KEYS  1 the lock   2 the channel of its waiters   3 a latch for this one release; missing: none.
--         It holds the answer, so that a release which is sent again for want of an answer gets
--         the same one; whoever got it deletes the latch.
-- ARGV  1 what the owner's field begins with: the owner's id   2 what it begins with if the lock
--         is to be left alone; empty: nothing   3 the command that publishes   4 the message
--       5 for how many ms the latch is kept
-- Gives 1 released; 0 nobody has it; -1 somebody else does.
-- Cost  4 commands, and two for a latch.
local lock, channel, latch = KEYS[1], KEYS[2], KEYS[3]
local call = redis.call
-- include parts/redisson_owner.lua
local answered = latch and call('GET', latch)
if answered then
  return tonumber(answered)
end
local held = owner_of(lock)
if not held then
  return 0
end
if not is_of(held, ARGV[1]) or ARGV[2] ~= '' and is_of(held, ARGV[2]) then
  return -1
end
call('DEL', lock)
-- Where access rules refuse the message, waiters find out by asking.
redis.pcall(ARGV[3], channel, ARGV[4])
if latch then
  call('SET', latch, 1, 'PX', ARGV[5])
end
return 1
