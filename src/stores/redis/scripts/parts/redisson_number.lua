-- The value of a counter of Redisson's. What is no number is not one of them; a key of another type
-- is refused by the server.
local value = redis.call('GET', KEYS[1])
if value and not tonumber(value) then
  return redis.error_reply('HOLDFAST_KIND')
end
local number = tonumber(value or '0')
