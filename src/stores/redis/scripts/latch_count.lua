-- Counts a latch (parts/latch.lua) down, once for each part, and tells those who wait when it
-- opens. The first that counts makes the latch.
--
-- KEYS  1 the latch
-- ARGV  1 how many have to count   2 how many count now   3 the field of what counts
--       4 names the run, should this be its first count
--       5 how long the latch is kept, ms   6 the channel of those who wait
-- Gives {1, how many are left, round}: counted, now or by this part before; the errors
--       HOLDFAST_COUNT n m: the latch is for n, not m; HOLDFAST_LEFT n m: fewer are left, n of m;
--       HOLDFAST_KIND k: the name is in use for that kind of lock
-- Cost  6 commands.
local latch, wanted, amount, part = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]
-- include parts/latch.lua
local known, problem = read_latch(latch)
if problem then
  return problem
end
if known and known.count ~= tonumber(wanted) then
  return other_count(known, wanted)
end
if known and redis.call('HGET', latch, part) then
  return {1, known.left, known.round}
end
known = known or {count = tonumber(wanted), left = tonumber(wanted), round = ARGV[4]}
if amount > known.left then
  return redis.error_reply('HOLDFAST_LEFT ' .. known.left .. ' ' .. known.count)
end
local left = known.left - amount
redis.call('HSET', latch, '#kind', 'latch', '#capacity', wanted, '#left', left, '#round',
  known.round, part, amount)
keep_for(latch, ARGV[5])
if left == 0 then
  redis.pcall('PUBLISH', ARGV[6], 'open')
end
return {1, left, known.round}
