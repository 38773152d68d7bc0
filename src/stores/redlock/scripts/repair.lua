-- Sets a lock again where it vanished while a majority of the other nodes still has it.
--
-- KEYS  1 the lock   2 the node's record
-- ARGV  1 the client's configuration   2 the lock's counter in the record
--       3 the value, as the majority has it   4 TTL, ms   5 its token
-- Gives {1} set; {0} somebody has it; {-1, why, …} as parts/voter.lua.
local call, node, field = redis.call, KEYS[2], ARGV[2]
-- include parts/voter.lua
if not call('SET', KEYS[1], ARGV[3], 'NX', 'PX', ARGV[4]) then
  return {0}
end
if (tonumber(record[4]) or 0) < tonumber(ARGV[5]) then
  call('HSET', node, field, ARGV[5])
end
return {1}
