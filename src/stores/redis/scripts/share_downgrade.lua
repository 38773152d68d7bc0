-- Turns the lease of a writer into one of a reader, without letting go: waiting readers at the head
-- of the queue come in beside it, and its token stays valid. Extends it as renew.lua does. Asking
-- again changes nothing.
--
-- KEYS  1 the lock   2 the slot's record   3 the queue   4 the waiters
-- ARGV  1 owner id   2 TTL, ms   3 its token
-- Gives {token (a string) done, or 0 if it holds nothing, or -1 if it holds it by another grant;
--       1 if another call is needed to find who is next, 0 otherwise}
local lock, slot, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, id, time, record = redis.call, ARGV[1], nil, nil
-- include parts/shares.lua
local value = read_lock() and as_value(id, mine)
if not value then
  return {0, 0}
end
if string.match(value, ';token=(%d+);') ~= ARGV[3] then
  return {-1, 0}
end
extend(mine, tonumber(ARGV[2]), 1)
return {ARGV[3], hand_over(nil, 0) == 'more' and 1 or 0}
