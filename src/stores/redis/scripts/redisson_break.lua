-- Takes a lock of Redisson's layout from whoever has it, and tells one waiter of each client that
-- listens.
--
-- KEYS  1 the lock   2 the channel of its waiters
-- ARGV  1 token; 0: whatever it is   2 the command that publishes   3 the message
-- Gives {1} broken; {0} nobody has it; {-1, the owner's field, cut at 2048 bytes} held otherwise.
-- include parts/redisson_owner.lua
local held, problem = owner_of(KEYS[1])
if problem then
  return problem
end
if not held then
  return {0}
end
if ARGV[1] ~= '0' and ARGV[1] ~= string.match(held, '^%x+;holdfast=%d+;token=(%d+);') then
  return {-1, string.sub(held, 1, 2048)}
end
redis.call('DEL', KEYS[1])
redis.pcall(ARGV[2], KEYS[2], ARGV[3])
return {1}
