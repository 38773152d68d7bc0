-- Gives back a permit of Redisson's expirable semaphore, if this owner has it, and tells waiters.
--
-- KEYS  1 how many permits are to be had   2 who has one, and until when   3 the channel of waiters
-- ARGV  1 owner id   2 the command that publishes
-- Gives 1 released; 0 the owner has none: it expired, or was given back before.
-- Cost  6 commands.
local counter, timeouts, channel, id, publish = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
-- include parts/redisson_permits.lua
local ends = tonumber(redis.call('ZSCORE', timeouts, id) or '0')
take_back_expired(counter, timeouts, channel, now, publish)
-- One that has expired may not have been among those.
if redis.call('ZREM', timeouts, id) == 0 then
  return 0
end
local free = redis.call('INCR', counter)
redis.pcall(publish, channel, free)
return ends > now and 1 or 0
