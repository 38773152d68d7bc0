-- Makes a latch (parts/latch.lua) one at which nobody has counted yet, whatever it was. Asked again
-- with the same round it changes nothing, so that an answer that was lost costs no count.
--
-- KEYS  1 the latch
-- ARGV  1 how many have to count   2 names the new round   3 how long the latch is kept, ms
--       4 the channel of those who wait
-- Gives {1, how many are left, round}; the error HOLDFAST_KIND as latch_count.lua
-- Cost  5 commands.
local latch, wanted, round = KEYS[1], ARGV[1], ARGV[2]
-- include parts/latch.lua
local known, problem = read_latch(latch)
if problem then
  return problem
end
if known and known.round == round then
  return {1, known.left, round}
end
redis.call('DEL', latch)
redis.call('HSET', latch, '#kind', 'latch', '#capacity', wanted, '#left', wanted, '#round', round)
if known and known.left == 0 then
  redis.call('HSET', latch, '#before', known.round)
end
redis.call('PEXPIRE', latch, ARGV[3])
redis.pcall('PUBLISH', ARGV[4], 'anew')
return {1, tonumber(wanted), round}
