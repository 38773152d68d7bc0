-- Permits that have expired are to be had again, and waiters are told. `now`: the server's clock in
-- ms. At most 100 in one call: the rest are found by the next. As Redisson does it.
local function take_back_expired(counter, timeouts, channel, now, publish)
  local expired = redis.call('ZRANGEBYSCORE', timeouts, 0, now, 'LIMIT', 0, 100)
  if #expired > 0 then
    redis.call('ZREM', timeouts, unpack(expired))
    local free = redis.call('INCRBY', counter, #expired)
    if free > 0 then
      redis.pcall(publish, channel, free)
    end
  end
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
