-- Says what keys hold here, for how long, and how many wait, without changing anything.
--
-- KEYS  1 the node's record, then for each lock the lock and its waiters
-- ARGV  1 the client's configuration
-- Gives for each lock three elements, its value (cut at 2048 bytes; false if there is none or it is
--       not a string), its PTTL, and how many are in line here; or {-1, why, …} as parts/voter.lua:
--       what a node that may not vote does not know is not "free".
local call, node, field = redis.call, KEYS[1], 'none'
-- include parts/voter.lua
local answer = {}
for i = 2, #KEYS, 2 do
  local held = redis.pcall('GETRANGE', KEYS[i], 0, 2047)
  local ttl = call('PTTL', KEYS[i])
  if type(held) ~= 'string' or ttl == -2 then
    held = false
  end
  local waiting = redis.pcall('ZCARD', KEYS[i + 1])
  table.insert(answer, held)
  table.insert(answer, ttl)
  table.insert(answer, type(waiting) == 'number' and waiting or 0)
end
return answer
