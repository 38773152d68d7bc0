-- Says who holds locks, for how long, and who waits, without changing anything.
--
-- KEYS  for each lock: the lock, its queue
-- ARGV  1 how many waiters of each to show
-- Gives for each lock four elements: its value (cut at 2048 bytes; false if there is none or it is
--       no lock), its PTTL, how many wait, and the entries of the first of those.
--       The value of a lock that several may hold (parts/shares.lua) is a list: its kind, capacity,
--       units in use, how many holders there are, how many ms until the last of them is gone, then
--       for each of those that came first, as many as waiters are shown, its units and its value.
--       Of a latch (parts/latch.lua) it is {"latch", its count, how many are left, 0, 0}.
local answer = {}

local function shares(key)
  local head = redis.pcall('HMGET', key, '#kind', '#capacity', '#left')
  if head.err or not head[1] or not head[2] then
    return false
  end
  if head[3] then
    return {head[1], tonumber(head[2]), tonumber(head[3]), 0, 0}
  end
  local time = redis.call('TIME')
  local ms = time[1] * 1000 + math.floor(time[2] / 1000)
  local all, holders, used, latest = redis.call('HGETALL', key), {}, 0, ms
  for i = 1, #all, 2 do
    local expiry, units, text = string.match(all[i + 1], '^(%d+);(%d+);(.*)$')
    expiry = tonumber(expiry)
    if #all[i] == 32 and expiry and expiry > ms then
      used, latest = used + units, math.max(latest, expiry)
      local token = string.match(text, ';token=(%d+);') or ''
      holders[#holders + 1] = {string.rep('0', 16 - #token) .. token, units,
        string.sub(all[i] .. ';' .. text, 1, 2048)}
    end
  end
  table.sort(holders, function(a, b)
    return a[1] < b[1]
  end)
  local said = {head[1], tonumber(head[2]), used, #holders, latest - ms}
  for i = 1, math.min(#holders, tonumber(ARGV[1])) do
    said[#said + 1] = holders[i][2]
    said[#said + 1] = holders[i][3]
  end
  return said
end

for i = 1, #KEYS, 2 do
  local held = redis.pcall('GETRANGE', KEYS[i], 0, 2047)
  if type(held) == 'table' then
    held = shares(KEYS[i])
  end
  local ttl = redis.call('PTTL', KEYS[i])
  if ttl == -2 then
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
