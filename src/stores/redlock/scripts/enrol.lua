-- Says what this node is to us, and begins the wait of one that may not vote.
--
-- KEYS  1 the node's record
-- ARGV  1 the client's configuration   2 its nodes, as text   3 max_ttl, ms
--       4 the run_id of this connection's server
-- Gives {1, run_id, begun} it votes;
--       {0, run_id@since, ms} blank: no marker, seen so for `ms` by its own clock;
--       {2, run_id@since, ms, begun} restarted: its marker is from before its last start;
--       {3, run_id@since, nodes, voted} of another set; voted is 1 if it has voted there.
-- begun: the waits (run_id@since) that all nodes were in when its set began, or nothing.
-- The start of the wait is kept here, not with a client: it goes on whoever comes and goes.
local call, node = redis.call, KEYS[1]
local run = ARGV[4]
local record = call('HMGET', node, 'run', 'config', 'joining', 'since', 'nodes', 'begun')
if record[2] and record[2] ~= ARGV[1] then
  return {3, record[3] == run and run .. '@' .. record[4] or run, record[5], record[1] and 1 or 0}
end
if record[1] == run then
  return {1, run, record[6] or ''}
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if record[3] ~= run then
  record[4] = string.format('%.0f', now)
  call('HSET', node, 'joining', run, 'since', record[4], 'config', ARGV[1], 'nodes', ARGV[2],
    'max_ttl', ARGV[3])
end
return {record[1] and 2 or 0, run .. '@' .. record[4], now - record[4], record[6] or ''}
