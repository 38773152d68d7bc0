-- Extends a batch of permits of Redisson's expirable semaphores, each only if its owner still has
-- it and it has not expired. Never brings one back, and never shortens one.
--
-- KEYS  for each permit: who has one of that semaphore, and until when
-- ARGV  for each permit in order: owner id, TTL in ms (positive), and its token, which is 0
-- Gives what renew.lua gives: {seconds, microseconds of the server's clock, then for each permit:
--       "0" (a string) extended; 0 its owner does not have it}
-- Cost  three commands for each permit, one round trip for all of them.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answer = {time[1], time[2]}
for i, timeouts in ipairs(KEYS) do
  local id, ttl = ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1])
  if not ttl or ttl <= 0 then
    return redis.error_reply('ERR renewing needs a positive TTL')
  end
  local score = redis.pcall('ZSCORE', timeouts, id)
  local ends = type(score) == 'string' and tonumber(score) or 0
  if ends <= now then
    answer[i + 2] = 0
  else
    if now + ttl > ends then
      -- Short of memory a server refuses what sets, but not after something that takes away: that
      -- comes first, of a member that there never is.
      redis.call('ZREM', timeouts, '')
      redis.call('ZADD', timeouts, string.format('%.0f', now + ttl), id)
    end
    answer[i + 2] = '0'
  end
end
return answer
