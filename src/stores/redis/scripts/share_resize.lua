-- Sets how many permits there are, for good: whatever number its users name from then on. Waiters
-- that fit now are granted; holders that do not fit any more finish.
--
-- KEYS  1 the lock   2 the slot's record   3 the queue   4 the waiters
-- ARGV  1 how many
-- Gives 1 done; 2 done, but another call is needed to find who is next; the error HOLDFAST_KIND as
--       share_acquire.lua
local lock, slot, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, id, time, record = redis.call, '', nil, nil
-- include parts/shares.lua
if not read_lock() then
  return redis.error_reply('HOLDFAST_KIND')
end
if kind and kind ~= 'permits' then
  return redis.error_reply('HOLDFAST_KIND ' .. kind)
end
kind, capacity, kept = 'permits', tonumber(ARGV[1]), '1'
call('HSET', lock, '#kind', kind, '#capacity', capacity, '#kept', 1)
call('PERSIST', lock)
return hand_over(nil, 0) == 'more' and 2 or 1
