-- Says who has a lock of Redisson's layout, without changing anything.
--
-- KEYS  1 the lock
-- Gives what inspect.lua gives of one lock: the owner's field (cut at 2048 bytes; false if nobody
--       has it), the PTTL, and that no waiters are known: they only listen.
-- include parts/redisson_owner.lua
local held, problem = owner_of(KEYS[1])
if problem then
  return problem
end
return {held and string.sub(held, 1, 2048) or false, redis.call('PTTL', KEYS[1]), 0, {}}
