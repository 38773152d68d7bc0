-- Says what token counters hold, without changing anything.
--
-- KEYS  slots' records (hash: layout, token)
-- Gives for each of them two elements: its token (a string; false if it is no such record), and its
--       PTTL.
local answer = {}
for _, key in ipairs(KEYS) do
  local token = redis.pcall('HGET', key, 'token')
  answer[#answer + 1] = type(token) == 'string' and token
  answer[#answer + 1] = redis.call('PTTL', key)
end
return answer
