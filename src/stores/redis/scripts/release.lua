-- Gives the lock back if this owner holds it, straight to the next waiter; leaves the queue if the
-- owner only waits there. Never touches anybody else's.
--
-- KEYS  1 the lock   2 the slot's record   3 the queue   4 the waiters
-- ARGV  1 owner id   2 the owner's entry in the queue; empty: it never joined
-- Gives 1 released; 0 nobody holds it; -1 somebody else does; 2 the lock is free now, but another
--       call is needed to find who is next.
-- Cost  3 commands when nobody waits, 9 with a hand-over.
--
-- Deletes before it sets: short of memory a server refuses the one but not the other, and after a
-- delete it lets a script go on.
local lock, slot, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local held = redis.call('GET', lock)
-- The common case, before the functions that the others need are made.
if held and ARGV[2] == '' and string.sub(held, 1, 33) == ARGV[1] .. ';' and
    redis.call('EXISTS', queue) == 0 then
  redis.call('DEL', lock)
  return 1
end
-- include parts/grant.lua
-- include parts/hand_over.lua
if ARGV[2] ~= '' and redis.call('HDEL', waiters, ARGV[1]) == 1 then
  redis.call('LREM', queue, 1, ARGV[2])
end
if held then
  if string.sub(held, 1, 33) ~= ARGV[1] .. ';' then
    return -1
  end
  redis.call('DEL', lock)
end
-- Released, or found free: the next in line must not wait for nothing.
if hand_over(nil, 0) == 'more' then
  return 2
end
return held and 1 or 0
