-- Gives the lock back here if this attempt has it, and votes for the waiter that came first, there
-- and then. Never touches anybody else's. Any node may give back; only one that may vote votes.
--
-- KEYS  1 the lock   2 the node's record   3 the waiters
-- ARGV  1 the client's configuration   2 the lock's counter in the record
--       3 attempt id   4 layout to write   5 now, ms: since when the next one has it
--       6 standing ask to take out of the line; empty: none
--       7 standing ask that takes its place, if it has one; empty: none   8 its ticket
-- Gives 1 released; 0 nobody has it here; -1 somebody else does.
-- Cost  3 commands when nobody waits.
--
-- A standing ask: attempt id (32), inbox (32), claim TTL in ms (8 digits), "host=…;pid=…;label=…".
-- Voting for it is what acquire.lua and raise.lua do for an ask that arrives just now and finds the
-- counter in its way, in one go: the lock is its own, and the counter goes up by one, strictly, for
-- it. The vote is the message "id;token". The claim TTL is short: a process that is paused with its
-- votes costs the others no more than that.
--
-- An attempt that lost a split vote puts its next one in line as it gives back: with everybody in
-- line on every node, all nodes vote for the same one, the lowest ticket. Only in its own place: a
-- copy of this request that comes late must not put one in line that has gone since.
local call, node, field = redis.call, KEYS[2], ARGV[2]
local held = redis.pcall('GET', KEYS[1])
local ours = type(held) == 'string' and string.sub(held, 1, 33) == ARGV[3] .. ';'
local there = ours
if ARGV[6] ~= '' then
  there = call('ZREM', KEYS[3], ARGV[6]) == 1 or ours
end
if ARGV[7] ~= '' and there then
  call('ZADD', KEYS[3], ARGV[8], ARGV[7])
  call('PEXPIRE', KEYS[3], 60000)
end
if not ours then
  return held and -1 or 0
end
local function look_up()
  -- include parts/voter.lua
  return record
end
local record
-- Those whose process is gone are passed over, what is no standing ask, and an old one of this same
-- attempt; a bounded number in one call, the rest ask again.
for _ = 1, 100 do
  local first = call('ZPOPMIN', KEYS[3])[1]
  if not first then
    break
  end
  record = record or look_up()
  if record[1] == -1 then
    break
  end
  local token = string.format('%.0f', (tonumber(record[4]) or 0) + 1)
  local id, claim = string.sub(first, 1, 32), tonumber(string.sub(first, 65, 72))
  if id ~= ARGV[3] and claim and claim > 0 and claim <= tonumber(record[3]) and
      call('PUBLISH', 'holdfast:vote:' .. string.sub(first, 33, 64), id .. ';' .. token) > 0 then
    call('SET', KEYS[1], id .. ';holdfast=' .. ARGV[4] .. ';token=' .. token .. ';block=1;since=' ..
        ARGV[5] .. ';' .. string.sub(first, 73), 'PX', claim)
    call('HSET', node, field, token)
    return 1
  end
end
call('DEL', KEYS[1])
return 1
