-- Gives the lock back here if this attempt has it, keeps it a moment for the waiter that came
-- first, and tells that one. Never touches anybody else's. Any node may do this, voter or not.
--
-- KEYS  1 the lock   2 the waiters   3 who is next
-- ARGV  1 attempt id   2 how long it is kept for the next, ms
--       3 "stay" or "leave" the waiters; empty: never joined
--       4 waiter: id .. inbox   5 its ticket, if it stays
-- Gives 1 released; 0 nobody has it here; -1 somebody else does.
-- Cost  3 commands when nobody waits.
--
-- An attempt that lost a split vote stays: with everybody in line on every node, all nodes keep the
-- lock for the same waiter, the one with the lowest ticket, and the next vote is not split.
local call = redis.call
local there = call('MGET', KEYS[1], KEYS[3])
local held, kept = there[1], there[2]
local ours = held and string.sub(held, 1, 33) == ARGV[1] .. ';'
if ours then
  call('DEL', KEYS[1])
end
local passes_on = ours
if ARGV[3] == 'leave' then
  call('ZREM', KEYS[2], ARGV[4])
  if kept == ARGV[4] then
    call('DEL', KEYS[3])
    passes_on = passes_on or not held
  end
elseif ARGV[3] == 'stay' then
  call('ZADD', KEYS[2], ARGV[5], ARGV[4])
  call('PEXPIRE', KEYS[2], 60000)
end
if passes_on then
  -- Those whose process is gone are passed over; a bounded number in one call, the rest poll.
  for _ = 1, 100 do
    local first = call('ZPOPMIN', KEYS[2])[1]
    if not first then
      break
    end
    call('SET', KEYS[3], first, 'PX', ARGV[2])
    if call('PUBLISH', 'holdfast:hint:' .. string.sub(first, 33), string.sub(first, 1, 32)) > 0 then
      break
    end
    call('DEL', KEYS[3])
  end
end
return ours and 1 or held and -1 or 0
