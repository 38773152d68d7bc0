-- Takes a read/write lock of Redisson's layout from all that have it, and tells waiters as a
-- release does. Keys of its holds end by their TTLs.
--
-- KEYS  1 the lock   2 the channel of its waiters
-- ARGV  1 token; 0: whatever it is   2 the command that publishes
-- Gives {1} broken; {0} nobody has it; {-1} there are no tokens by which to choose.
-- include parts/redisson_holds.lua
local mode, problem = mode_of(KEYS[1])
if problem then
  return problem
end
if not mode then
  return {0}
end
if ARGV[1] ~= '0' then
  return {-1}
end
redis.call('DEL', KEYS[1])
redis.pcall(ARGV[2], KEYS[2], mode == 'write' and '1' or '0')
return {1}
