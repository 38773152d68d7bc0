-- Takes one permit of Redisson's expirable semaphore. Asked again by an owner that has one, it
-- extends that and takes no other.
--
-- KEYS  1 how many permits are to be had   2 who has one, and until when   3 the channel of waiters
-- ARGV  1 owner id   2 TTL in ms (positive)   3 how many permits there are to be, if that was not
--         set yet; 0: then there are none   4 the command that publishes
-- Gives {1, "0", "0"} granted; {0, ms until the next permit expires (-1: none does), ""} busy.
--       In the form of redisson_acquire.lua: there is no token.
-- Cost  6 commands.
local counter, timeouts, channel = KEYS[1], KEYS[2], KEYS[3]
local id, ttl, permits, publish = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local call = redis.call
-- include parts/redisson_permits.lua
local untaken = call('GET', counter)
if not untaken and permits > 0 then
  call('SET', counter, permits)
  redis.pcall(publish, channel, permits)
end
local mine = tonumber(call('ZSCORE', timeouts, id) or '0')
if mine <= now then
  take_back_expired(counter, timeouts, channel, now, publish)
  -- Its own may not have been among those.
  if mine > 0 and call('ZREM', timeouts, id) == 1 then
    call('INCR', counter)
  end
  mine = 0
end
if mine == 0 and tonumber(call('GET', counter) or '0') < 1 then
  local first = call('ZRANGE', timeouts, 0, 0, 'WITHSCORES')
  local left = first[2] and tonumber(first[2]) - now or -1
  -- A lease without an end has a score beyond all dates.
  return {0, left < 86400000 and left or -1, ''}
end
if mine == 0 then
  call('DECR', counter)
end
if now + ttl > mine then
  call('ZADD', timeouts, string.format('%.0f', now + ttl), id)
end
return {1, '0', '0'}
