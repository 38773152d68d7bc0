-- Says who has a fair lock of Redisson's layout, and who waits, without changing anything.
--
-- KEYS  1 the lock   2 the queue
-- ARGV  1 how many waiters to show
-- Gives what redisson_inspect.lua gives, with how many wait, and the entries of the first of those.
-- include parts/redisson_owner.lua
local held, problem = owner_of(KEYS[1])
if problem then
  return problem
end
return {held and string.sub(held, 1, 2048) or false, redis.call('PTTL', KEYS[1]),
  redis.call('LLEN', KEYS[2]), redis.call('LRANGE', KEYS[2], 0, ARGV[1] - 1)}
