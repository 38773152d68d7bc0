-- Tokens and the lock's value. Wants `lock` and `slot`, the keys.
--
-- The token is max(counter + 1, the server's clock in µs). The clock makes a counter harmless that
-- came back old or not at all; the counter makes a clock harmless that stepped back. Numbers of
-- that size must not go through tostring(), which prints 1.79e+15. `block` tokens are taken at
-- once: the counter then stands at the last of them.
local clock
local function now()
  clock = clock or redis.call('TIME')
  return clock[1] * 1000000 + clock[2]
end
local record
local counter
local function read_record()
  record = record or redis.call('HMGET', slot, 'layout', 'token')
  counter = counter or tonumber(record[2]) or 0
  return tonumber(record[1]) or 0
end
local function grant(id, layout, block, ttl, holder)
  local time = now()
  local newest = math.max(read_record(), layout)
  local token = math.max(counter + 1, time)
  counter = token + block - 1
  local text = string.format('%.0f', token)
  redis.call('HSET', slot, 'layout', newest, 'token', string.format('%.0f', counter))
  redis.call('SET', lock, id .. ';holdfast=' .. layout .. ';token=' .. text .. ';block=' .. block ..
    ';since=' .. clock[1] .. '000;' .. holder, 'PX', ttl)
  return text
end
