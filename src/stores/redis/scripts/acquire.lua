-- Takes the lock if it is free, and answers the same attempt the same way however often it asks.
--
-- KEYS  1 the lock            2 the slot's record (hash: layout, token)
-- ARGV  1 owner id            2 TTL, ms
--       3 our layout          4 newest layout we can share locks with
--       5 who holds it: "host=…;pid=…;label=…"
-- Gives {1, token} granted; {0, PTTL, value} held by somebody else (value cut at 2048 bytes);
--       an error HOLDFAST_LAYOUT n: written by a version too new for us.
-- Cost  3 commands when busy, 5 when granted. One round trip.
--
-- The token is max(counter + 1, the server's clock in µs). The clock makes a counter harmless that
-- came back old or not at all; the counter makes a clock harmless that stepped back. Numbers of
-- that size must not go through tostring(), which prints 1.79e+15.
local held = redis.call('GET', KEYS[1])
if held then
  if string.sub(held, 1, 33) == ARGV[1] .. ';' then
    if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
      redis.call('PEXPIRE', KEYS[1], ARGV[2])
    end
    return {1, string.match(held, ';token=(%d+);')}
  end
  return {0, redis.call('PTTL', KEYS[1]), string.sub(held, 1, 2048)}
end
local slot = redis.call('HMGET', KEYS[2], 'layout', 'token')
local layout = tonumber(slot[1]) or 0
if layout > tonumber(ARGV[4]) then
  return redis.error_reply('HOLDFAST_LAYOUT ' .. slot[1])
end
local time = redis.call('TIME')
local token = time[1] * 1000000 + time[2]
local counter = (tonumber(slot[2]) or 0) + 1
if counter > token then
  token = counter
end
local text = string.format('%.0f', token)
redis.call('HSET', KEYS[2], 'layout', math.max(layout, tonumber(ARGV[3])), 'token', text)
redis.call('SET', KEYS[1], ARGV[1] .. ';holdfast=' .. ARGV[3] .. ';token=' .. text .. ';since=' ..
  time[1] .. string.sub(string.format('%06d', time[2]), 1, 3) .. ';' .. ARGV[5], 'PX', ARGV[2])
return {1, text}
