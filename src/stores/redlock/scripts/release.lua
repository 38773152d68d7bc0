-- Gives the lock back here if this attempt has it, and tells the waiter that came first. Never
-- touches another attempt's lock. Any node may give back, also one that may not vote.
--
-- KEYS  1 the lock   2 the waiters
-- ARGV  1 attempt id   3 how long a turn lasts, ms; 0: the attempt was not granted
--       2 the waiter that leaves the queue: its id, its inbox and its holder text, as acquire.lua
--         wrote them; empty: none
-- Gives 1 released; 0 nobody has it here; -1 another attempt does.
-- Cost  3 commands when nobody waits.
--
-- The first in the queue leaves it, is told by a message to its inbox, and has a turn: for a moment
-- the lock's key is "turn;<waiter>", and only that waiter can take it. It takes it by asking, as
-- anybody else: nothing is granted here. A message may be lost, and the waiter that is told may be
-- paused or cut off from the other nodes; then the turn lapses, and all waiters, who go on asking,
-- find the lock free. A waiter whose process is gone has nobody who listens, and is passed over.
--
-- Once the key is deleted nothing may abort the script: a user that may not PUBLISH, or a server
-- that is out of memory, leaves the waiters to their asking.
local call, try = redis.call, redis.pcall
local held = try('GET', KEYS[1])
local ours = type(held) == 'string' and string.sub(held, 1, 33) == ARGV[1] .. ';'
if ours then
  call('DEL', KEYS[1])
end
if ARGV[2] ~= '' then
  try('ZREM', KEYS[2], ARGV[2])
end
if not ours then
  return held and -1 or 0
end
-- An attempt that failed hands no turn on. With an even number of nodes alive, two waiters that
-- have half of them each would hand each other's half to and fro for ever.
if ARGV[3] == '0' then
  return 1
end
-- A bounded number in one call; the rest ask again.
for _ = 1, 100 do
  local first = try('ZPOPMIN', KEYS[2])[1]
  if not first then
    break
  end
  local waiter, inbox = string.sub(first, 1, 32), string.sub(first, 33, 64)
  local heard = try('PUBLISH', 'holdfast:turn:' .. inbox, waiter)
  if type(heard) ~= 'number' then
    break
  end
  if heard > 0 then
    try('SET', KEYS[1], 'turn;' .. waiter, 'PX', ARGV[3])
    break
  end
end
return 1
