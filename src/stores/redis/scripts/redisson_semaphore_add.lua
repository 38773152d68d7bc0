-- Gives permits of Redisson's semaphore back, or changes how many there are, and tells those who
-- wait how many are to be had now.
--
-- KEYS  1 the counter   2 the channel of those who wait
-- ARGV  1 how many, perhaps fewer than none   2 the command that publishes
-- Gives {1, how many are to be had now}; the error HOLDFAST_KIND
-- include parts/redisson_number.lua
number = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.pcall(ARGV[2], KEYS[2], number)
return {1, number}
