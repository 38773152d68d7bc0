-- A lock that goes from waiter to waiter is never free, and clients that neither queue nor listen
-- get nothing. So once in a while no waiter takes it, for a jittered moment. Where that stands is
-- in the hash of waiters, beside their ids: `hands` and `began` (ms), hand-overs since the lock was
-- last free, and `room`, until when (ms) it is kept free. `hands` is written by the includer, after
-- it has taken something away.
if call('EXISTS', queue) == 1 then
  time = call('TIME')
  local ms = time[1] * 1000 + math.floor(time[2] / 1000)
  local before = call('HMGET', waiters, 'hands', 'began')
  hands = (tonumber(before[1]) or 0) + 1
  local began = hands > 1 and tonumber(before[2]) or ms
  if hands > tonumber(ARGV[4]) or ms - began > tonumber(ARGV[5]) then
    room = ms + ARGV[6]
    call('DEL', lock)
    call('HDEL', waiters, 'hands', 'began')
    call('HSET', waiters, 'room', room)
  end
end
