-- The counters of a node that votes, for one that lost its own.
--
-- KEYS  1 the node's record
-- ARGV  1 the client's configuration
-- Gives all fields and values of the record (counters are those that start with "c:"), or
--       {-1, why, …} as parts/voter.lua.
local call, node, field = redis.call, KEYS[1], 'none'
-- include parts/voter.lua
return call('HGETALL', node)
