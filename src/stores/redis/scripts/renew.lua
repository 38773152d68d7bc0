-- Extends a batch of leases, each only if its owner still holds it by the same grant. Never brings
-- one back, and never shortens one: a late request with a short TTL must not take from a later,
-- longer one.
--
-- KEYS  the locks
-- ARGV  for each lock in order: owner id, TTL in ms (positive), and its token, which is any of the
--       grant's block: hand-over within a process uses the later ones; 0: whatever it is
-- Gives {seconds, microseconds of the server's clock, then for each lock:
--       its token (a string) extended, and for token 0 the last of the block, which no thread of
--       the former holder was given before its own; 0 nobody holds it; -1 somebody or something
--       else does, or the owner by another grant}
-- Cost  three commands for each lock, one round trip for all of them.
local time = redis.call('TIME')
local answer = {time[1], time[2]}
for i, key in ipairs(KEYS) do
  local id, ttl, given = ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1]), ARGV[3 * i]
  if not ttl or ttl <= 0 then
    return redis.error_reply('ERR renewing needs a positive TTL')
  end
  local held = redis.pcall('GET', key)
  if not held then
    answer[i + 2] = 0
  elseif type(held) ~= 'string' or string.sub(held, 1, 33) ~= id .. ';' then
    answer[i + 2] = -1
  else
    local first = tonumber(string.match(held, ';token=(%d+);')) or 0
    local last = first + (tonumber(string.match(held, ';block=(%d+);')) or 1) - 1
    local token = tonumber(given) or 0
    if token ~= 0 and (token < first or token > last) then
      answer[i + 2] = -1
    else
      if redis.call('PTTL', key) < ttl then
        redis.call('PEXPIRE', key, ttl)
      end
      answer[i + 2] = token ~= 0 and given or string.format('%.0f', last)
    end
  end
end
return answer
