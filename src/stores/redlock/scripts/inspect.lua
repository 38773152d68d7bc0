-- Says what keys hold here and for how long, without changing anything.
--
-- KEYS  1 the node's record, then the locks
-- ARGV  1 the client's configuration
-- Gives for each lock two elements, its value (cut at 2048 bytes; false if there is none or it is
--       not a string) and its PTTL; or {-1, why, …} as parts/voter.lua: what a node that may not
--       vote does not know is not "free".
local call, node, field = redis.call, KEYS[1], 'none'
-- include parts/voter.lua
local answer = {}
for i = 2, #KEYS do
  local held = redis.pcall('GETRANGE', KEYS[i], 0, 2047)
  local ttl = call('PTTL', KEYS[i])
  if type(held) ~= 'string' or ttl == -2 then
    held = false
  end
  answer[2 * i - 3] = held
  answer[2 * i - 2] = ttl
end
return answer
