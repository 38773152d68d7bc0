-- Makes a node a voter: in one step, because everything may have changed since the client looked
-- at it.
--
-- KEYS  1 the node's record
-- ARGV  1 the client's configuration   2 its nodes, as text   3 max_ttl, ms
--       4 the client's wall clock, ms
--       5 the wait that the client saw the end of; empty: a person vouches that nothing is held
--       6 the least value (digits) of all counters, also of those that nobody remembers
--       then pairs: a counter's field and its least value
--       last, the run_id of this connection's server
-- Gives {1} it votes, now or already; {0, why} its wait is not over or is another one, or it
--       belongs to another set.
--
-- The counters that the client brings were read when this wait was over. A node that was started
-- again or emptied since is in another wait: it may have voted between the two, and what was read
-- does not know that.
local call, node, run = redis.call, KEYS[1], ARGV[#ARGV]
local max_ttl, wall = tonumber(ARGV[3]), tonumber(ARGV[4])
local vouched = ARGV[5] == ''
local record = call('HMGET', node, 'run', 'config')
if record[2] and record[2] ~= ARGV[1] and (record[1] or not vouched) then
  return {0, 'it belongs to another set of nodes'}
end
if record[1] == run then
  return {1}
end
-- include parts/wait.lua
if not vouched and (wait ~= ARGV[5] or left > 0) then
  return {0, 'it has to wait for longer, or has begun to wait anew'}
end
local function at_least(field, value)
  if (tonumber(call('HGET', node, field)) or 0) < tonumber(value) then
    call('HSET', node, field, value)
  end
end
at_least('floor', ARGV[6])
for i = 7, #ARGV - 2, 2 do
  at_least(ARGV[i], ARGV[i + 1])
end
call('HDEL', node, 'wait', 'since', 'seen')
call('HSET', node, 'run', run, 'config', ARGV[1], 'nodes', ARGV[2], 'max_ttl', ARGV[3])
return {1}
