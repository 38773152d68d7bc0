-- Extends a batch of leases, each only if its owner still holds it. Never brings one back, and
-- never shortens one: a late request with a short TTL must not take from a later, longer one.
--
-- KEYS  the locks
-- ARGV  for each lock in order: owner id, TTL in ms (positive)
-- Gives {seconds, microseconds of the server's clock, then for each lock:
--       its token (a string) extended; 0 nobody holds it; -1 somebody or something else does}
-- Cost  three commands for each lock, one round trip for all of them.
local time = redis.call('TIME')
local answer = {time[1], time[2]}
for i, key in ipairs(KEYS) do
  local ttl = tonumber(ARGV[2 * i])
  if not ttl or ttl <= 0 then
    return redis.error_reply('ERR renewing needs a positive TTL')
  end
  local held = redis.pcall('GET', key)
  if not held then
    answer[i + 2] = 0
  elseif type(held) ~= 'string' or string.sub(held, 1, 33) ~= ARGV[2 * i - 1] .. ';' then
    answer[i + 2] = -1
  else
    if redis.call('PTTL', key) < ttl then
      redis.call('PEXPIRE', key, ttl)
    end
    answer[i + 2] = string.match(held, ';token=(%d+);')
  end
end
return answer
