-- One attempt's vote of one node: takes the lock here if it is free.
--
-- KEYS  1 the lock   2 the node's record   3 the waiters (sorted set)
-- ARGV  1 the client's configuration   2 the lock's counter in the record
--       3 attempt id   4 TTL, ms   5 proposed token, digits   6 layout to write
--       7 now, ms: since when it has the lock   8 "host=…;pid=…;label=…"
--       9 how far (µs) a proposal may be ahead of our clock
--       10 ticket: when the waiter came; empty: it does not wait
--       11 inbox and claim TTL, as they stand in its standing ask: release.lua
--       12 most waiters   13 not empty: it has asked before, and may be in line here
-- Gives {1} fresh: taken, and the counter went up to the proposal;
--       {2, counter, token} stale: taken, or taken before by this attempt (never fresh again: its
--           counter may have gone up for somebody since), with a counter not below the proposal,
--           and the token in the key: what the counter once went up to for this attempt, or 0;
--       {0, PTTL, value, counter} busy (value cut at 2048 bytes), and in line if it waits: if it is
--           called from now on, it is with a token above the counter;
--       {-1, why, …} refused: parts/voter.lua, {-1, 'ttl', most}, {-1, 'ahead', µs}.
-- Cost  4 commands when free, 6 when busy: run seldom, each takes longer than it does in a loop.
--
-- A stale key says token=0 until it is raised, and does not count in a renewal: an acquire that was
-- held up may come when another attempt was granted the lock here and has gone again.
local call, node, field = redis.call, KEYS[2], ARGV[2]
-- include parts/voter.lua
if tonumber(ARGV[4]) > tonumber(record[3]) then
  return {-1, 'ttl', record[3]}
end
local counter, proposal, most = tonumber(record[4]) or 0, tonumber(ARGV[5]), tonumber(ARGV[9])
-- Not by our clock alone: if it was set back, tokens must go on from where they are. Not by the
-- floor: it may be as far ahead of our clock itself.
if proposal - own > most then
  local time = call('TIME')
  local ahead = proposal - math.max(time[1] * 1000000 + time[2], own)
  if ahead > most then
    return {-1, 'ahead', string.format('%.0f', ahead)}
  end
end
local held = call('GET', KEYS[1])
if held and string.sub(held, 1, 33) == ARGV[3] .. ';' then
  -- It may have been called here, for less than its TTL.
  if call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then
    call('PEXPIRE', KEYS[1], ARGV[4])
  end
  return {2, record[4] or '0', string.match(held, ';token=(%d+);') or '0'}
elseif held then
  if ARGV[10] ~= '' and call('ZCARD', KEYS[3]) < tonumber(ARGV[12]) then
    call('ZADD', KEYS[3], ARGV[10], ARGV[3] .. ARGV[11] .. ARGV[8])
    call('PEXPIRE', KEYS[3], 60000)
  end
  return {0, call('PTTL', KEYS[1]), string.sub(held, 1, 2048), record[4] or '0'}
end
local fresh = proposal > counter
call('SET', KEYS[1], ARGV[3] .. ';holdfast=' .. ARGV[6] .. ';token=' ..
    (fresh and ARGV[5] or '0') .. ';block=1;since=' .. ARGV[7] .. ';' .. ARGV[8], 'PX', ARGV[4])
if ARGV[13] ~= '' then
  call('ZREM', KEYS[3], ARGV[3] .. ARGV[11] .. ARGV[8])
end
if not fresh then
  return {2, record[4], '0'}
end
call('HSET', node, field, ARGV[5])
return {1}
