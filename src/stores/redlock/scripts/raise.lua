-- Raises the counter for an attempt that has the lock here, strictly: two attempts must never have
-- raised one node to the same token.
--
-- KEYS  1 the lock   2 the node's record
-- ARGV  1 the client's configuration   2 the lock's counter in the record
--       3 attempt id   4 token to raise to, digits
-- Gives {1} raised, now or by an earlier copy of this request; {2, counter} the counter is not
--       below it; {0} the attempt does not have the lock here; {-1, why, …} as parts/voter.lua.
local call, node, field = redis.call, KEYS[2], ARGV[2]
-- include parts/voter.lua
local held = call('GET', KEYS[1])
if not held or string.sub(held, 1, 33) ~= ARGV[3] .. ';' then
  return {0}
end
-- The lock remembers what it was raised to.
if string.match(held, ';token=(%d+);') == ARGV[4] then
  return {1}
end
if (tonumber(record[4]) or 0) >= tonumber(ARGV[4]) then
  return {2, record[4]}
end
call('HSET', node, field, ARGV[4])
local value = string.gsub(held, ';token=%d+;', ';token=' .. ARGV[4] .. ';', 1)
call('SET', KEYS[1], value, 'KEEPTTL')
return {1}
