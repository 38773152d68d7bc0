-- A latch: a hash, as a lock that several may hold is (parts/shares.lua), and told apart by #kind.
--   #kind      "latch"
--   #capacity  how many have to count
--   #left      how many of them have not counted yet; 0: the latch is open
--   #round     names this run of it: another after the latch was started anew
--   #before    the run before that, if that one had opened
--   <32 hex>   a count that names no part: how much it counted. Its id is for one call, which asks
--              again if its answer was lost.
--   =<part>    the same of a part that has a name
-- It expires when nobody has counted or waited for so long as its users say.
--
-- Gives its count, what is left, round and the round before; nothing if there is none; or what to
-- refuse with.
local function read_latch(latch)
  local all = redis.pcall('HMGET', latch, '#kind', '#capacity', '#left', '#round', '#before')
  if all.err then
    return nil, string.find(all.err, 'WRONGTYPE', 1, true) and
      redis.error_reply('HOLDFAST_KIND') or all
  end
  if all[1] == 'latch' then
    return {count = tonumber(all[2]), left = tonumber(all[3]), round = all[4], before = all[5]}
  end
  if all[1] or redis.call('EXISTS', latch) == 1 then
    return nil, redis.error_reply('HOLDFAST_KIND ' .. (all[1] or ''))
  end
end

local function keep_for(latch, ms)
  if redis.call('PTTL', latch) < tonumber(ms) then
    redis.call('PEXPIRE', latch, ms)
  end
end

local function other_count(known, wanted)
  return redis.error_reply('HOLDFAST_COUNT ' .. known.count .. ' ' .. wanted)
end
