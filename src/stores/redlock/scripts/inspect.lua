-- Says what keys hold here, for how long, and who waits, without changing anything.
--
-- KEYS  1 the node's record, then for each lock the lock and its waiters
-- ARGV  1 the client's configuration   2 how many waiters of each to show
-- Gives for each lock four elements, its value (cut at 2048 bytes; false if nobody has it: there is
--       none, it is not a string, or it is kept for the waiter whose turn it is), its PTTL, how
--       many are in the queue here, and the first of those, each with its ticket; or {-1, why, …}
--       as parts/voter.lua: what a node that may not vote does not know is not "free".
local call, node, field = redis.call, KEYS[1], 'none'
-- include parts/voter.lua
local answer = {}
for i = 2, #KEYS, 2 do
  local held = redis.pcall('GETRANGE', KEYS[i], 0, 2047)
  local ttl = call('PTTL', KEYS[i])
  if type(held) ~= 'string' or ttl == -2 or string.find(held, '^turn;%x+$') then
    held = false
  end
  local line = redis.pcall('ZRANGE', KEYS[i + 1], 0, ARGV[2] - 1, 'WITHSCORES')
  table.insert(answer, held)
  table.insert(answer, ttl)
  table.insert(answer, line.err and 0 or call('ZCARD', KEYS[i + 1]))
  table.insert(answer, line.err and {} or line)
end
return answer
