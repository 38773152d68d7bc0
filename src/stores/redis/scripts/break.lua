-- Takes the lock from whoever holds it with this token, or another of the same block, and gives it
-- to the next waiter.
--
-- KEYS  1 the lock   2 the slot's record   3 the queue   4 the waiters
-- ARGV  1 token
-- Gives {1} broken; {0} nobody holds it; {-1, value} held otherwise (value cut at 2048 bytes).
local lock, slot, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, time, record = redis.call, nil, nil
-- include parts/hand_over.lua
local held = call('GET', lock)
if not held then
  return {0}
end
local token = tonumber(string.match(held, '^%x+;holdfast=%d+;token=(%d+);'))
local block = tonumber(string.match(held, ';block=(%d+);')) or 1
local given = tonumber(ARGV[1])
if not token or given < token or given >= token + block then
  return {-1, string.sub(held, 1, 2048)}
end
call('DEL', lock)
hand_over(nil, 0)
return {1}
