-- Gives the lock back if this owner holds it, straight to the next waiter; leaves the queue if the
-- owner only waits there. Never touches anybody else's.
--
-- KEYS  1 the lock   2 the slot's record   3 the queue   4 the waiters
-- ARGV  1 owner id   2 the owner's entry in the queue; empty: it never joined
-- Gives 1 released; 3 released, and given to the next waiter; 0 nobody holds it; -1 somebody else
--       does; 2 released, but another call is needed to find who is next; -2 nobody held it, and
--       the same.
-- Cost  3 commands when nobody waits, 9 with a hand-over.
--
-- Takes things away before it sets anything: short of memory a server refuses the one but not the
-- other, and after a first write it lets a script go on.
local lock, slot, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, time, record = redis.call, nil, nil
local held = call('GET', lock)
local ours = held and string.sub(held, 1, 33) == ARGV[1] .. ';'
if ARGV[2] ~= '' and call('HDEL', waiters, ARGV[1]) == 1 then
  call('LREM', queue, 1, ARGV[2])
end
if held and not ours then
  return -1
end
-- Released, or found free: the next in line must not wait for nothing.
local first = call('LPOP', queue)
if not first then
  return ours and call('DEL', lock) or 0
end
-- include parts/hand_over.lua
local result = hand_over(nil, 0, first)
if result ~= 'handed' and ours then
  call('DEL', lock)
end
if result == 'more' then
  return ours and 2 or -2
end
return not ours and 0 or result == 'handed' and 3 or 1
