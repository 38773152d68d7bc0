-- Says what keys hold and for how long, without changing anything.
--
-- KEYS  the locks
-- Gives for each key two elements: its value (cut at 2048 bytes; false if there is none or it is
--       not a string) and its PTTL.
local answer = {}
for i, key in ipairs(KEYS) do
  local held = redis.pcall('GETRANGE', key, 0, 2047)
  local ttl = redis.call('PTTL', key)
  if type(held) ~= 'string' or ttl == -2 then
    held = false
  end
  answer[2 * i - 1] = held
  answer[2 * i] = ttl
end
return answer
