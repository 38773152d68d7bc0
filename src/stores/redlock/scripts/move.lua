-- Takes a node from one set to another, or only says what it is to them.
--
-- KEYS  1 the node's record
-- ARGV  1 its configuration in the old set; empty: it is not in it
--       2 its configuration in the new set
--       3 the new set's nodes, as text   4 max_ttl, ms   5 the client's wall clock, ms
--       6 "look": change nothing; "announce": it will join the new set; "stay": it is in both;
--         "leave": only in the old one; "join": only in the new one, and begins to wait now;
--         "complete": enough nodes have changed over
--       7 an id for the wait of a node that joins   8 the run_id of this connection's server
-- Gives {what it was} before, {0, nodes} if it belongs to neither set:
--       1 of the old set, and has lost nothing;   2 of the old set, and may have lost something;
--       3 of the new set, and has lost nothing;   4 of the new set, and may not vote yet;
--       5 of no set;   {6, ms} of the old set, but not for max_ttl yet: `ms` are missing;
--       with 3, 4 and 5 comes 1 if it knows that enough nodes have changed over, and 0 if not.
--
-- In one script: before it the node answers the old set's clients, after it the new one's, and what
-- it holds and its counters stay. It remembers when, by its clock and the client's: until max_ttl
-- is over since, locks may be held that only nodes of the list before know. So there is no second
-- change before that: it would not be measured against that list.
--
-- A node that joins must not vote before all locks of the old list have expired. They are not
-- renewed any more once enough nodes have changed over; so its wait begins then, whatever it has
-- waited for before. That enough have is written down last. Until it is, nodes that changed over
-- give nobody their counters, and no node is let in on the grounds of clocks (core/admission.hpp):
-- so a node that joins is told first of all.
local call, node, run = redis.call, KEYS[1], ARGV[8]
local max_ttl, wall = tonumber(ARGV[4]), tonumber(ARGV[5])
local record = call('HMGET', node, 'run', 'config', 'moved', 'moved_seen', 'joins', 'complete')
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local intact = record[1] == run
local was
if record[2] == ARGV[2] then
  if ARGV[6] == 'complete' then
    call('HSET', node, 'complete', '1')
  end
  return {intact and 3 or 4, record[6] and 1 or 0}
elseif record[2] and record[2] == ARGV[1] then
  local left = 0
  if record[3] then
    left = math.max(record[3] + max_ttl - now, (record[4] or wall - max_ttl) + max_ttl - wall)
  end
  if left > 0 then
    return {6, left}
  end
  was = intact and 1 or 2
elseif not record[2] or not record[1] then
  was = 5
else
  return {0, call('HGET', node, 'nodes')}
end
if ARGV[6] == 'announce' then
  call('HSET', node, 'joins', ARGV[2])
  call('HDEL', node, 'config', 'nodes', 'max_ttl', 'complete')
elseif ARGV[6] == 'join' then
  call('HSET', node, 'wait', run .. '@' .. ARGV[7], 'since', string.format('%.0f', now), 'seen',
    ARGV[5])
elseif ARGV[6] == 'complete' then
  -- Not on a node that has forgotten that it changed over.
  if record[5] == ARGV[2] then
    call('HSET', node, 'complete', '1')
  end
elseif ARGV[6] == 'stay' or ARGV[6] == 'leave' then
  call('HSET', node, 'config', ARGV[2], 'nodes', ARGV[3], 'max_ttl', ARGV[4], 'moved',
    string.format('%.0f', now), 'moved_seen', ARGV[5])
  call('HDEL', node, 'joins', 'complete')
  if ARGV[6] == 'leave' then
    call('HDEL', node, 'run', 'wait', 'since', 'seen')
  end
end
return {was, record[5] == ARGV[2] and record[6] and 1 or 0}
