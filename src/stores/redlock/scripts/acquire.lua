-- One attempt's vote of one node: takes the lock here if it is free.
--
-- KEYS  1 the lock   2 the node's record   3 the waiters (sorted set)   4 who is next
-- ARGV  1 the client's configuration   2 the lock's counter in the record
--       3 attempt id   4 TTL, ms   5 proposed token, digits
--       6 "since=…;host=…;pid=…;label=…": the same on all nodes
--       7 layout to write   8 how far (µs) a proposal may be ahead of our clock
--       9 ticket: when the waiter came; empty: it does not wait   10 waiter: id .. inbox
--       11 most waiters   12 not empty: it has asked before, and may be in line here
-- Gives {1} fresh: taken, and the counter went up to the proposal;
--       {2, counter} stale: taken, or taken before by this attempt (never fresh again: its counter
--           may have gone up for somebody since), with a counter not below the proposal;
--       {0, PTTL, value} busy (value cut at 2048 bytes), and queued if it waits;
--       {3, PTTL} free, but kept for another waiter for a moment; queued if it waits;
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
local counter, proposal, most = tonumber(record[4]) or 0, tonumber(ARGV[5]), tonumber(ARGV[8])
-- Not by our clock alone: if it was set back, tokens must go on from where they are. Not by the
-- floor: it may be as far ahead of our clock itself.
if proposal - own > most then
  local time = call('TIME')
  local ahead = proposal - math.max(time[1] * 1000000 + time[2], own)
  if ahead > most then
    return {-1, 'ahead', string.format('%.0f', ahead)}
  end
end
local fresh = proposal > counter
local waits = ARGV[9] ~= ''
local there = call('MGET', KEYS[1], KEYS[4])
local held, kept = there[1], there[2]
local answer
if kept and kept ~= ARGV[10] then
  answer = {3, call('PTTL', KEYS[4])}
elseif held and string.sub(held, 1, 33) == ARGV[3] .. ';' then
  return {2, record[4] or '0'}
elseif held then
  answer = {0, call('PTTL', KEYS[1]), string.sub(held, 1, 2048)}
elseif not call('SET', KEYS[1], ARGV[3] .. ';holdfast=' .. ARGV[7] .. ';token=' ..
    (fresh and ARGV[5] or '0') .. ';block=1;' .. ARGV[6], 'NX', 'PX', ARGV[4]) then
  -- It is not text, which MGET does not tell from nothing: this fails, and says so.
  call('GET', KEYS[1])
end
if answer then
  if waits and call('ZCARD', KEYS[3]) < tonumber(ARGV[11]) then
    call('ZADD', KEYS[3], ARGV[9], ARGV[10])
    call('PEXPIRE', KEYS[3], 60000)
  end
  return answer
end
if ARGV[12] ~= '' then
  call('ZREM', KEYS[3], ARGV[10])
end
if kept then
  call('DEL', KEYS[4])
end
if not fresh then
  return {2, record[4]}
end
call('HSET', node, field, ARGV[5])
return {1}
