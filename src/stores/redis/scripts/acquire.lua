-- Takes the lock if it is free and nobody waits; otherwise joins the queue, if asked to. Answers
-- the same attempt the same way however often it asks: asking again is also how a waiter says that
-- it is still there.
--
-- KEYS  1 the lock   2 the slot's record (hash: layout, token)   3 the queue   4 the waiters
-- ARGV  1 owner id            2 TTL, ms
--       3 our layout          4 newest layout we can share locks with
--       5 who asks: "host=…;pid=…;label=…"
--       6 its entry for the queue (parts/hand_over.lua), with an inbox that is open; empty: do not
--         join
--       7 most entries in the queue
--       8 how many tokens to reserve
-- Gives {1, token} granted now; {1, token, 1} granted before, and perhaps a message about it is
--           still on its way;
--       {0, PTTL, value} held by another (value cut at 2048 bytes);
--       {2, PTTL, value, counter, head} the same, and queued: a grant with a token above `counter`
--           will be sent to the inbox. head is 1 if nobody will tell, so that this attempt has to
--           look for itself: the holder is foreign and this attempt the first waiter, or access
--           rules have refused a message to a waiter. With an empty value nobody holds it: it is
--           kept free for foreign clients for PTTL ms;
--       {3} free, but it takes another call to find out for whom;
--       errors HOLDFAST_LAYOUT n: written by a version too new for us; HOLDFAST_FULL: the queue.
-- Cost  5 commands when free (6 with an entry), 3 when busy, 6 when joining. One round trip.
local lock, slot, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, id, entry = redis.call, ARGV[1], ARGV[6]
-- A caller that brings an entry has had to wait before, and probably has to again.
local held = entry ~= '' and call('GET', lock)
-- The common case by itself, before the functions that the others need are made: it takes half the
-- time. The same as grant() below, for one token and a record in our own layout.
if not held and ARGV[8] == '1' and call('EXISTS', lock, queue) == 0 then
  local record = call('HMGET', slot, 'layout', 'token')
  if record[1] == ARGV[3] then
    local time = call('TIME')
    local token = time[1] * 1000000 + time[2]
    local last = tonumber(record[2]) or 0
    if last >= token then
      token = last + 1
    end
    local text = string.format('%.0f', token)
    call('HSET', slot, 'token', text)
    call('SET', lock, id .. ';holdfast=' .. ARGV[3] .. ';token=' .. text ..
      ';block=1;since=' .. time[1] .. '000;' .. ARGV[5], 'PX', ARGV[2])
    return {1, text}
  end
end

held = held or call('GET', lock)
if held then
  if string.sub(held, 1, 33) == id .. ';' then
    if call('PTTL', lock) < tonumber(ARGV[2]) then
      call('PEXPIRE', lock, ARGV[2])
    end
    return {1, string.match(held, ';token=(%d+);'), 1}
  end
  if entry == '' then
    return {0, call('PTTL', lock), string.sub(held, 1, 2048)}
  end
end

-- Joins, or says "still here". Also if the lock is free and others wait: the holder expired, or a
-- foreign client deleted it, and no waiter was told. Then it is the first waiter's turn, perhaps
-- ours.
local record = call('HMGET', slot, 'layout', 'token')
if not held then
  local newest = tonumber(record[1]) or 0
  if newest > tonumber(ARGV[4]) then
    return redis.error_reply('HOLDFAST_LAYOUT ' .. newest)
  end
end
local time = call('TIME')
if entry ~= '' then
  -- Should all waiters die, nothing of theirs stays for longer than this.
  local keep_ms, length = 600000, 1
  if call('HSET', waiters, id, time[1] * 1000 + math.floor(time[2] / 1000)) == 1 then
    length = call('RPUSH', queue, entry)
    if length > tonumber(ARGV[7]) then
      call('RPOP', queue)
      call('HDEL', waiters, id)
      return redis.error_reply('HOLDFAST_FULL')
    end
  end
  if length == 1 then
    call('PEXPIRE', queue, keep_ms)
    call('PEXPIRE', waiters, keep_ms)
  end
end
if not held then
  local ms = time[1] * 1000 + math.floor(time[2] / 1000)
  local room = tonumber(call('HGET', waiters, 'room')) or 0
  -- Longer than any room: the clock was set back since, and the room is long over.
  local room_max = 2000
  if room > ms and room <= ms + room_max then
    return {entry == '' and 0 or 2, room - ms, '', record[2] or '0', 0}
  end
  if room > 0 then
    call('HDEL', waiters, 'room')
  end
  -- include parts/hand_over.lua
  -- Taking from a queue that is not there is still a write, and after a write a server that is
  -- short of memory would let us have the lock.
  local result = call('EXISTS', queue) == 0 and 'nobody' or hand_over(id, ARGV[2])
  if result == 'more' then
    return {3}
  end
  if result == 'nobody' then
    result = grant(id, ARGV[3], ARGV[8], ARGV[2], ARGV[5])
  end
  if result ~= 'handed' then
    return {1, result}
  end
  held = call('GET', lock)
  if entry == '' then
    return {0, call('PTTL', lock), string.sub(held, 1, 2048)}
  end
  record[2] = call('HGET', slot, 'token')
end
local ours = string.find(held, ';holdfast=', 33, true) == 33
local head = not ours and call('LINDEX', queue, 0) == entry or
  call('HGET', waiters, 'mute')
return {2, call('PTTL', lock), string.sub(held, 1, 2048), record[2] or '0', head and 1 or 0}
