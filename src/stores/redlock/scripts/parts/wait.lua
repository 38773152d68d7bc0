-- How long this node still waits before it may vote again. Wants `call`, `node` (the key of its
-- record), `run` (the run_id of this connection's server), `wall` (the client's wall clock, ms)
-- and `max_ttl` (ms); leaves `time` (TIME), `wait` (the id of the wait that it is in, empty if
-- none has begun), and its two starts, `since` and `seen`, and `left`, ms.
--
-- Two clocks measure the wait, because the clock of a host that has just booted may be minutes
-- off and step then: this node's own, and that of the client that asks. The second start is the
-- lowest wall clock of any client that tried to use the node. A clock that is below its start
-- moves the start down, or a clock that was set back would lock the node out. So it takes a
-- node's clock that steps *and* two clients whose clocks are as far apart to cut a wait short.
--
-- The wait is named after the run of the server in which it began: a wait of an earlier run does
-- not count.
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local waiting = call('HMGET', node, 'wait', 'since', 'seen')
local wait, since, seen = waiting[1] or '', now, wall
if string.sub(wait, 1, #run + 1) == run .. '@' then
  since, seen = math.min(now, waiting[2]), math.min(wall, waiting[3])
else
  wait = ''
end
local left = math.max(since + max_ttl - now, seen + max_ttl - wall, 0)
