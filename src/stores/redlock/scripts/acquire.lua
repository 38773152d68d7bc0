-- One attempt's vote of one node: takes the lock here if it is free.
--
-- KEYS  1 the lock   2 the node's record   3 the waiters (sorted set)
-- ARGV  1 the client's configuration   2 the lock's counter in the record
--       3 attempt id   4 TTL, ms   5 proposed token, digits   6 layout to write
--       7 now, ms: since when it has the lock   8 "host=…;pid=…;label=…"
--       9 how far (µs) a proposal may be ahead of this node's clock and still be believed
--       10 the waiter: its id and its inbox, 32 digits each; empty: it does not queue here
--       11 its ticket: when it began to wait, µs   12 most waiters
--       13 not empty: it has asked before, and may be in the queue
-- Gives {1} fresh: taken, and the counter went up to the proposal;
--       {2, counter} stale: taken, or taken before by this attempt (never fresh again: its counter
--           may have gone up for another attempt since), and the counter is as it was;
--       {0, PTTL, value, counter} busy, and queued if it waits; value is cut at 2048 bytes, and
--           empty if the lock is kept for the waiter whose turn it is: release.lua;
--       {-1, why, …} refused: parts/voter.lua, {-1, 'ttl', most}.
-- Cost  5 commands when free, 3 to 7 when busy: run seldom, each takes longer than in a loop.
--
-- A stale key says token=0 until it is raised, and does not count in a renewal: an acquire that was
-- held up may come when another attempt was granted the lock here and has gone again.
--
-- A proposal that is too far ahead of this node's clock takes the lock, but does not move the
-- counter. It is measured by the clock and never by the counter: such bounds add up over clients
-- that are ahead of each other. It is not refused: clients that have seen a counter propose above
-- it, and a slot whose counter is ahead would be closed until the clocks have caught up.
--
-- The ticket is a client's clock, so it counts within the last second of this node's clock only: a
-- client whose clock is behind is not always first. An entry keeps its place until it leaves.
local call, node, field = redis.call, KEYS[2], ARGV[2]
-- include parts/voter.lua
if tonumber(ARGV[4]) > tonumber(record[3]) then
  return {-1, 'ttl', record[3]}
end
local counter, proposal = tonumber(record[4]) or 0, tonumber(ARGV[5])
local function now()
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end
local held, waiter = call('GET', KEYS[1]), ARGV[10]
if held and string.sub(held, 1, 33) == ARGV[3] .. ';' then
  return {2, record[4] or '0'}
end
local turn = held and string.match(held, '^turn;(%x+)$')
if held and not (turn and turn == string.sub(waiter, 1, 32)) then
  if waiter ~= '' and call('ZCARD', KEYS[3]) < tonumber(ARGV[12]) then
    local time = now()
    local ticket = math.min(math.max(tonumber(ARGV[11]), time - 1000000), time)
    call('ZADD', KEYS[3], 'NX', string.format('%.0f', ticket), waiter .. ARGV[8])
    call('PEXPIRE', KEYS[3], 60000)
  end
  return {0, call('PTTL', KEYS[1]), turn and '' or string.sub(held, 1, 2048), record[4] or '0'}
end
local fresh = proposal > counter and proposal - now() <= tonumber(ARGV[9])
call('SET', KEYS[1], ARGV[3] .. ';holdfast=' .. ARGV[6] .. ';token=' ..
    (fresh and ARGV[5] or '0') .. ';block=1;since=' .. ARGV[7] .. ';' .. ARGV[8], 'PX', ARGV[4])
if ARGV[13] ~= '' and waiter ~= '' then
  call('ZREM', KEYS[3], waiter .. ARGV[8])
end
if not fresh then
  return {2, record[4] or '0'}
end
call('HSET', node, field, ARGV[5])
return {1}
