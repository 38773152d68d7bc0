-- Sets a counter of Redisson's that has no value yet, and tells those who wait.
--
-- KEYS  1 the counter   2 the channel of those who wait
-- ARGV  1 the value   2 the command that publishes   3 what it says
-- Gives {1, value} set; {0, value} it has that one already; the error HOLDFAST_KIND
-- include parts/redisson_number.lua
if value then
  return {0, number}
end
redis.call('SET', KEYS[1], ARGV[1])
redis.pcall(ARGV[2], KEYS[2], ARGV[3])
return {1, tonumber(ARGV[1])}
