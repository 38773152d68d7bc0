-- Takes all permits of Redisson's semaphore that are to be had.
--
-- KEYS  1 the counter
-- Gives {1, how many}; the error HOLDFAST_KIND
-- include parts/redisson_number.lua
if value then
  redis.call('SET', KEYS[1], 0)
end
return {1, number}
