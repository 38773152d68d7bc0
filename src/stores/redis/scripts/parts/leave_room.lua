-- A lock that goes from waiter to waiter is never free, and clients that neither queue nor listen
-- get nothing. So once in a while no waiter takes it, for a jittered moment. Where that stands is
-- in the hash of waiters, beside their ids: `hands` and `began` (ms), hand-overs since the lock was
-- last free, and `room`, until when (ms) it is kept free.
if call('EXISTS', queue) == 1 then
  time = call('TIME')
  local ms = time[1] * 1000 + math.floor(time[2] / 1000)
  local hands = call('HINCRBY', waiters, 'hands', 1)
  if hands == 1 then
    call('HSET', waiters, 'began', ms)
  end
  local began = tonumber(call('HGET', waiters, 'began')) or ms
  if hands > tonumber(ARGV[3]) or ms - began > tonumber(ARGV[4]) then
    room = ms + ARGV[5]
    call('DEL', lock)
    call('HDEL', waiters, 'hands', 'began')
    call('HSET', waiters, 'room', room)
  end
end
