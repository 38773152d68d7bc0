-- Takes a node from one set to another, or only says what it is to them.
--
-- KEYS  1 the node's record
-- ARGV  1 its configuration in the old set; empty: it is not in it
--       2 its configuration in the new set
--       3 the new set's nodes, as text   4 max_ttl, ms
--       5 "look": change nothing; "stay": it is in both; "join": only in the new one; "leave": only
--         in the old one
--       6 the run_id of this connection's server
-- Gives {what it was} before, {0, nodes} if it belongs to neither set:
--       1 of the old set, and has lost nothing;   2 of the old set, and may have lost something;
--       3 of the new set, and has lost nothing;   4 of the new set, and may not vote yet;
--       5 of no set;   {6, ms} of the old set, but not for max_ttl yet: `ms` are missing.
--
-- In one script: before it the node answers the old set's clients, after it the new one's, and what
-- it holds and its counters stay. It remembers when: until max_ttl is over since, locks may be held
-- that only nodes of the list before know (scripts/counters.lua). So there is no second change
-- before that: it would not be measured against that list.
local call, node = redis.call, KEYS[1]
local run = ARGV[6]
local record = call('HMGET', node, 'run', 'config', 'moved')
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local intact = record[1] == run
local was
if record[2] == ARGV[2] then
  return {intact and 3 or 4}
elseif record[2] and record[2] == ARGV[1] then
  local left = (record[3] or -ARGV[4]) + ARGV[4] - now
  if left > 0 then
    return {6, left}
  end
  was = intact and 1 or 2
elseif not record[2] or not record[1] then
  was = 5
else
  return {0, call('HGET', node, 'nodes')}
end
if ARGV[5] == 'look' then
  return {was}
end
call('HSET', node, 'config', ARGV[2], 'nodes', ARGV[3], 'max_ttl', ARGV[4], 'moved',
  string.format('%.0f', now))
if ARGV[5] == 'leave' then
  call('HDEL', node, 'run')
end
if ARGV[5] ~= 'stay' then
  call('HDEL', node, 'joining', 'since')
end
call('HDEL', node, 'begun')
return {was}
