-- The counters of a node that votes, for one that lost its own.
--
-- KEYS  1 the node's record
-- ARGV  1 the client's configuration
-- Gives all fields and values of the record (counters are "floor" and those that start with "c:"),
--       or {-1, why, …} as parts/voter.lua, {-1, 'moved', ms}: not for so long yet.
--
-- A node that came from another set has what was granted there; one that joins has not. It must not
-- vote before all that has expired, so nodes that came from there do not help it before.
local call, node, field = redis.call, KEYS[1], 'none'
-- include parts/voter.lua
local moved = call('HGET', node, 'moved')
if moved then
  local time = call('TIME')
  local left = moved + record[3] - (time[1] * 1000 + math.floor(time[2] / 1000))
  if left > 0 then
    return {-1, 'moved', left}
  end
end
return call('HGETALL', node)
