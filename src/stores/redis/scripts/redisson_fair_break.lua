-- Takes a fair lock of Redisson's layout from the owner that has it, and tells the first waiter.
--
-- KEYS  1 the lock   2 the queue   3 until when each waiter keeps its place
-- ARGV  1 token; 0: whatever it is   2 the command that publishes   3 the channel of the first
--         waiter, less ":<entry>"
-- Gives {1} broken; {0} nobody has it; {-1} there are no tokens by which to choose.
-- include parts/redisson_owner.lua
-- include parts/redisson_queue.lua
local held, problem = owner_of(KEYS[1])
if problem then
  return problem
end
if not held then
  return {0}
end
if ARGV[1] ~= '0' then
  return {-1}
end
redis.call('DEL', KEYS[1])
tell_first(KEYS[2], KEYS[3], ARGV[3], ARGV[2])
return {1}
