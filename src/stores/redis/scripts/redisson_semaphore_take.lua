-- Takes permits of Redisson's semaphore, if there are so many. Nothing says who has them.
--
-- KEYS  1 the counter
-- ARGV  1 how many
-- Gives {1, how many are left} taken; {0, how many there are}; the error HOLDFAST_KIND
-- include parts/redisson_number.lua
local wanted = tonumber(ARGV[1])
if number < wanted then
  return {0, number}
end
return {1, redis.call('DECRBY', KEYS[1], wanted)}
