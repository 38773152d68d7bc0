-- Takes units of a lock that several may hold (parts/shares.lua) if they are free and nobody waits;
-- otherwise joins the queue, if asked to. As acquire.lua does for a mutex, and answered alike.
--
-- KEYS  1 the lock   2 the slot's record (hash: layout, token)   3 the queue   4 the waiters
-- ARGV  1 owner id            2 TTL, ms
--       3 our layout          4 newest layout we can share locks with
--       5 who asks: "host=…;pid=…;label=…"
--       6 its entry for the queue (parts/shares.lua), with an inbox that is open; empty: do not
--         join
--       7 most entries in the queue
--       8 how many units it wants; 0: all of them
--       9 the kind of lock: "shared" or "permits"
--       10 how many units there are, unless a person has set it (share_resize.lua)
-- Gives {1, token} granted now; {1, token, 1} granted before, and perhaps a message about it is
--           still on its way;
--       {0, ms, value} not free, and the next lease ends in so many ms; `value` is one of the
--           holders, as a mutex's value would be (cut at 2048 bytes);
--       {2, ms, value, counter, head} the same, and queued: a grant with a token above `counter`
--           will be sent to the inbox. head is 1 if access rules have refused a message to a
--           waiter, so that this attempt has to look for itself;
--       {3} it takes another call to find out whose turn it is;
--       errors HOLDFAST_LAYOUT n: written by a version too new for us; HOLDFAST_FULL: the queue;
--       HOLDFAST_KIND k: the name is in use for that kind of lock, or, without k, for something
--       else; HOLDFAST_CAPACITY n m: it is in use with n units,
--       not m; HOLDFAST_UNITS n: it wants more than
--       all n of them.
-- Cost  6 commands when units are free and others are held, 7 when none is held. One round trip.
local lock, slot, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, id, entry, time, record = redis.call, ARGV[1], ARGV[6], nil, nil
local ttl = tonumber(ARGV[2])
-- The common cases by themselves, before the functions that the others need are made, as in
-- acquire.lua: nobody waits, and there is room beside the others, or there is no lock yet. The same
-- as grant() in parts/shares.lua.
local there = call('EXISTS', lock, queue)
local seen = redis.pcall('HMGET', lock, '#kind', '#capacity', '#used', '#until', '#soonest',
  '#kept', id)
local kept, units = seen[6], ARGV[8]
local used
if there == 0 then
  units = units == '0' and ARGV[10] or units
  used = tonumber(units)
elseif there == 1 and units ~= '0' and not seen[7] and seen[3] and seen[1] == ARGV[9] and
  (kept or seen[2] == ARGV[10]) then
  used = seen[3] + units
end
if used and used <= tonumber(kept and seen[2] or ARGV[10]) then
  record = call('HMGET', slot, 'layout', 'token')
  time = call('TIME')
  local expiry = time[1] * 1000 + math.floor(time[2] / 1000) + ttl
  if record[1] == ARGV[3] and (there == 0 or seen[5] and expiry - seen[5] >= 0 and
    (kept or seen[4] and expiry - seen[4] <= 0)) then
    local text = time[1] .. string.format('%06d', time[2])
    if record[2] and record[2] - text >= 0 then
      text = string.format('%.0f', record[2] + 1)
    end
    call('HSET', slot, 'token', text)
    -- A command takes longer to be given a number than its text.
    used = string.format('%d', used)
    local field = expiry .. ';' .. units .. ';holdfast=' .. ARGV[3] .. ';token=' .. text ..
      ';block=1;since=' .. time[1] .. '000;' .. ARGV[5]
    if there == 1 then
      call('HSET', lock, '#used', used, id, field)
    else
      call('HSET', lock, '#kind', ARGV[9], '#capacity', ARGV[10], '#used', used, '#soonest', expiry,
        '#last', id, id, field, '#until', expiry + ttl)
      call('PEXPIRE', lock, 2 * ttl)
    end
    return {1, text}
  end
end
-- include parts/shares.lua
if not read_lock() then
  return redis.error_reply('HOLDFAST_KIND')
end
if kind and kind ~= ARGV[9] then
  return redis.error_reply('HOLDFAST_KIND ' .. kind)
end
if mine then
  local value = as_value(id, mine)
  if value then
    extend(mine, ttl)
    return {1, string.match(value, ';token=(%d+);'), 1}
  end
  look_through()
end
if kind and not kept and capacity ~= tonumber(ARGV[10]) then
  look_through()
  -- Waiters keep their number, too, but not those that are gone: what is free is offered to them.
  local waiting = used == 0 and hand_over(nil, 0) or 'full'
  if waiting == 'more' then
    return {3}
  end
  if used > 0 or waiting == 'full' then
    return redis.error_reply('HOLDFAST_CAPACITY ' .. capacity .. ' ' .. ARGV[10])
  end
end
if not kept then
  kind, capacity = ARGV[9], tonumber(ARGV[10])
end
local units = ARGV[8] == '0' and capacity or tonumber(ARGV[8])
if units > capacity then
  return redis.error_reply('HOLDFAST_UNITS ' .. capacity)
end
record = call('HMGET', slot, 'layout', 'token')
local newest = tonumber(record[1]) or 0
if newest > tonumber(ARGV[4]) then
  return redis.error_reply('HOLDFAST_LAYOUT ' .. newest)
end
local result = 'nobody'
if call('EXISTS', queue) == 1 or not fits(units) then
  if entry ~= '' then
    -- Joins, or says "still here".
    -- Should all waiters die, nothing of theirs stays for longer than this.
    local keep_ms, length = 600000, 1
    if call('HSET', waiters, id, now_ms()) == 1 then
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
  -- Those before it first: a unit that came free belongs to the one that has waited longest. It may
  -- be in line although it brings no entry, because it has lost its inbox since.
  local _, token
  result, _, token = hand_over(id, ttl)
  if token then
    return {1, token}
  end
  if result == 'more' then
    return {3}
  end
end
if result == 'nobody' and fits(units) then
  return {1, grant(id, ARGV[3], units, ttl, ARGV[5])}
end
local value = string.sub(any_holder(), 1, 2048)
local left = soonest < never and math.max(0, soonest - now_ms()) or 0
if entry == '' then
  return {0, left, value}
end
return {2, left, value, record[2] or '0', call('HGET', waiters, 'mute') and 1 or 0}
