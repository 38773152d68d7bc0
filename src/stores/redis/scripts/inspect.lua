-- Says who holds locks, for how long, and who waits, without changing anything.
--
-- KEYS  for each lock: the lock, its queue
-- ARGV  1 how many waiters of each to show
-- Gives for each lock four elements: its value (cut at 2048 bytes; false if there is none or it is
--       not a string), its PTTL, how many wait, and the entries of the first of those.
local answer = {}
for i = 1, #KEYS, 2 do
  local held = redis.pcall('GETRANGE', KEYS[i], 0, 2047)
  local ttl = redis.call('PTTL', KEYS[i])
  if type(held) ~= 'string' or ttl == -2 then
    held = false
  end
  local entries = redis.pcall('LRANGE', KEYS[i + 1], 0, ARGV[1] - 1)
  local n = #answer
  answer[n + 1] = held
  answer[n + 2] = ttl
  if entries.err then
    answer[n + 3], answer[n + 4] = 0, {}
  else
    answer[n + 3], answer[n + 4] = redis.call('LLEN', KEYS[i + 1]), entries
  end
end
return answer
