-- Says how many have not counted yet at a latch (parts/latch.lua).
--
-- KEYS  1 the latch
-- ARGV  1 how many have to count   2 the round that is waited for; empty: whichever it is
--       3 how long the latch is kept from now on, ms, because this waits; 0: it only looks
-- Gives {1, 0, round} it is open, or was at the end of the round that is waited for;
--       {0, how many are left, round}; round is empty if nobody has counted yet;
--       {-1, 0, round} the round that is waited for is gone: started anew, or deleted;
--       errors as latch_count.lua
-- Cost  2 commands, and 2 for one that waits.
local latch, wanted, awaited, keep = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
-- include parts/latch.lua
local known, problem = read_latch(latch)
if problem then
  return problem
end
if awaited ~= '' and (not known or known.round ~= awaited) then
  return {known and known.before == awaited and 1 or -1, 0, awaited}
end
if not known then
  return {0, tonumber(wanted), ''}
end
if known.count ~= tonumber(wanted) then
  return other_count(known, wanted)
end
if known.left > 0 and keep > 0 then
  keep_for(latch, keep)
end
return {known.left == 0 and 1 or 0, known.left, known.round}
