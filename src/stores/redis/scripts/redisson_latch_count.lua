-- Counts Redisson's latch down by one. At zero its key goes, and those who wait are told; one that
-- is not there stays so.
--
-- KEYS  1 the latch   2 the channel of those who wait
-- ARGV  1 the command that publishes   2 what says that it is open
-- Gives {1, how many are left}; the error HOLDFAST_KIND
-- include parts/redisson_number.lua
if not value then
  return {1, 0}
end
number = redis.call('DECR', KEYS[1])
if number <= 0 then
  redis.call('DEL', KEYS[1])
end
if number == 0 then
  redis.pcall(ARGV[1], KEYS[2], ARGV[2])
end
return {1, math.max(number, 0)}
