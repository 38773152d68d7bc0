-- Makes a node a voter: in one step, because everything may have changed since it was looked at.
--
-- KEYS  1 the node's record
-- ARGV  1 the client's configuration   2 its nodes, as text   3 max_ttl, ms
--       4 the run_id that it had when it was looked at; if it waited, with @ and since when
--       5 "waited": only if it has waited for max_ttl; "kept": its marker survived, and it loses
--         nothing when it crashes; "new": somebody vouches that nobody holds anything
--       6 waited: how far (µs) ahead of its clock its counters begin
--       7 if the set is new: the waits (run_id@since) that all nodes were in when it began. It is
--         kept: one that still is in that wait has never voted, and may begin like this one.
--       then pairs: counter's field, or "floor", and its least value
--       last, the run_id of this connection's server
-- Gives {1} it votes, now or already; {0, why} it was started again since, has not waited long
--       enough, or belongs to another set. A node that was emptied again, without a new start, is
--       in another wait: counters that were read before that one are not enough.
--
-- The floor is the least value of all counters, also of those that nobody remembers. A node that
-- has waited begins at its clock, which costs nothing, for proposals are clocks, too. If nobody can
-- tell it what it granted, it begins as far ahead as it would have granted: scripts/acquire.lua.
local call, node = redis.call, KEYS[1]
local run = ARGV[#ARGV]
local run_seen, since_seen = string.match(ARGV[4], '^(%x+)@?(%d*)$')
if run ~= run_seen then
  return {0, 'it was started again meanwhile'}
end
local record = call('HMGET', node, 'run', 'config', 'joining', 'since')
if ARGV[5] ~= 'new' and record[2] ~= ARGV[1] then
  return {0, 'it belongs to another set of nodes'}
end
if record[1] == run and record[2] == ARGV[1] then
  return {1}
end
if ARGV[5] == 'waited' then
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if record[3] ~= run or record[4] ~= since_seen or now - record[4] < tonumber(ARGV[3]) then
    return {0, 'it has not waited for max_ttl, or has begun to wait again'}
  end
elseif ARGV[5] == 'kept' and not record[1] then
  return {0, 'its marker is gone'}
end
local function at_least(field, value)
  if (tonumber(call('HGET', node, field)) or 0) < tonumber(value) then
    call('HSET', node, field, value)
  end
end
for i = 8, #ARGV - 1, 2 do
  at_least(ARGV[i], ARGV[i + 1])
end
if ARGV[5] == 'waited' then
  local time = call('TIME')
  at_least('floor', string.format('%.0f', time[1] * 1000000 + time[2] + ARGV[6]))
end
call('HDEL', node, 'joining', 'since')
if ARGV[7] ~= '' then
  call('HSET', node, 'begun', ARGV[7])
end
call('HSET', node, 'run', run, 'config', ARGV[1], 'nodes', ARGV[2], 'max_ttl', ARGV[3])
return {1}
