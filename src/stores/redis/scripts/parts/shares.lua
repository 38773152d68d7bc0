-- A lock that several may hold at once: `capacity` units, of which each holder has some. It is a
-- hash, and a mutex is a string: a name stands for one kind of lock at a time.
--   #kind      "shared" (units of readers; a writer has all of them) or "permits"
--   #capacity  how many units there are; that of "shared" is part of the layout
--   #used      how many of them are held, the dead included until they are looked for
--   #soonest   no lease ends before (ms of the server's clock): not before that are dead holders
--              looked for
--   #until     the key itself does not expire before
--   #last      who was granted last, to be shown to those who wait; perhaps gone since
--   #kept      1 if a person has set the capacity: the key then stays when nobody holds a unit
--   <32 hex>   a holder: "expiry, ms;units;holdfast=1;token=…;block=1;since=…;host=…;pid=…;label=…"
-- It expires when its longest lease has been over for as long as that was, at most, so that nothing
-- of the dead stays.
--
-- Wants `call`, `id`, and the keys `lock`, `slot`, `queue` and `waiters`; `time` and `record` (the
-- slot's layout and token) are used if known. What stands in the hash is read once, by read_lock(),
-- and kept in these:
local kind, capacity, used, soonest, last, kept, mine, outlives
local never = math.huge

local function now_ms()
  time = time or call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- False if the key holds something else.
local function read_lock()
  local all = redis.pcall('HMGET', lock, '#kind', '#capacity', '#used', '#soonest', '#last',
    '#kept', id, '#until')
  if all.err then
    -- Any other error is told as it is.
    return not string.find(all.err, 'WRONGTYPE', 1, true) and call('HGET', lock, '#kind')
  end
  kind, capacity, last, kept, mine = all[1], tonumber(all[2]), all[5], all[6], all[7]
  used, soonest, outlives = tonumber(all[3]) or 0, tonumber(all[4]) or never, tonumber(all[8]) or 0
  return kind and capacity or call('EXISTS', lock) == 0
end

-- After units came free. Everybody who calls this has taken something away before, so that a server
-- that is short of memory does not refuse it.
local function write_used()
  if used > 0 or kept then
    call('HSET', lock, '#used', used)
  else
    call('DEL', lock)
    soonest, last, outlives = never, false, 0
  end
end

-- Takes their units from dead holders, and finds out when the next lease ends. Reads everything:
-- 10,000 holders take some 10 ms, and so it is called when a unit is wanted and `soonest` is past.
-- A live holder moves its expiry without moving `soonest`, so this is once in two thirds of a TTL.
local function look_through()
  local ms, dead, all = now_ms(), {}, call('HGETALL', lock)
  used, soonest, last = 0, never, false
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 1) ~= '#' then
      local expiry, units = string.match(all[i + 1], '^(%d+);(%d+);')
      expiry = tonumber(expiry)
      if expiry and expiry > ms then
        used = used + units
        soonest = math.min(soonest, expiry)
        -- Any, but the same whatever the order of fields.
        last = (not last or all[i] < last) and all[i] or last
      else
        dead[#dead + 1] = all[i]
      end
    end
  end
  for i = 1, #dead, 50 do
    call('HDEL', lock, unpack(dead, i, math.min(i + 49, #dead)))
  end
  if used > 0 then
    -- Refused if memory is short and nobody was dead: then it is found out again the next time.
    redis.pcall('HSET', lock, '#used', used, '#soonest', soonest, '#last', last)
  elseif #dead > 0 then
    write_used()
  end
end

local function fits(units)
  if used + units > capacity and soonest <= now_ms() then
    look_through()
  end
  return used + units <= capacity
end

-- What a holder's field says, as a mutex's value would: "id;holdfast=…;token=…". Nothing if its
-- lease has ended.
local function as_value(of, field)
  local expiry, text = string.match(field or '', '^(%d+);%d+;(.*)$')
  return expiry and tonumber(expiry) > now_ms() and of .. ';' .. text
end

-- One of the holders, to be shown.
local function any_holder()
  local field = last and call('HGET', lock, last)
  if not field and used > 0 then
    look_through()
    field = last and call('HGET', lock, last)
  end
  return field and as_value(last, field) or ''
end

-- The key must outlive its longest lease. Twice as long is set as is needed now, so that those that
-- come next need not. A renewal may have moved it further than is known here.
local function keep_for(ttl)
  if kept or now_ms() + ttl <= outlives then
    return
  end
  local left = math.max(call('PTTL', lock), 2 * ttl)
  outlives = now_ms() + left
  call('PEXPIRE', lock, left)
  call('HSET', lock, '#until', outlives)
end

-- Moves the expiry of this holder, never back, and sets its units. A lease must not be lost for
-- want of memory, and after something that takes away, a server lets a script set: so that comes
-- first, of a field that there never is.
local function extend(field, ttl, units)
  local expiry, had, text = string.match(field, '^(%d+);(%d+);(.*)$')
  expiry = math.max(tonumber(expiry), now_ms() + ttl)
  units = units or tonumber(had)
  used = used + units - had
  call('HDEL', lock, '#')
  call('HSET', lock, id, expiry .. ';' .. units .. ';' .. text, '#used', used)
  keep_for(ttl)
end

-- Tokens are those of mutexes: see parts/hand_over.lua. Each holder has one of its own.
local function grant(to, layout, units, ttl, holder)
  time = time or call('TIME')
  record = record or call('HMGET', slot, 'layout', 'token')
  local token = math.max((tonumber(record[2]) or 0) + 1, time[1] * 1000000 + time[2])
  local text = string.format('%.0f', token)
  record[2] = text
  if (tonumber(record[1]) or 0) < tonumber(layout) then
    record[1] = layout
    call('HSET', slot, 'layout', layout, 'token', text)
  else
    call('HSET', slot, 'token', text)
  end
  local expiry = now_ms() + ttl
  if used == 0 then
    soonest = never  -- what stands there is of those that are gone
  end
  used, soonest, last = used + units, math.min(soonest, expiry), to
  call('HSET', lock, '#kind', kind, '#capacity', capacity, '#used', used, '#soonest', soonest,
    '#last', to, to, expiry .. ';' .. units .. ';holdfast=' .. layout .. ';token=' .. text ..
    ';block=1;since=' .. time[1] .. '000;' .. holder)
  keep_for(ttl)
  return text
end

-- Gives units to waiters, from the head of the queue and for as long as they fit: readers in a row
-- are let in together, and one that wants more than is free makes all behind it wait, however
-- little those want. The queue, and who is passed over in it, are as in parts/hand_over.lua, and
-- entries are written alike but for two fields: `block` is 0, and the holder's text begins with
-- "kind=units;", 0 units for all there are. So a script of another kind of lock, under whose name
-- the queue stood before, passes the entry over.
--
-- `me`: the id that asks, if any, and `ttl` what it gets. Gives 'nobody' (the queue is empty),
-- 'more' (call again) or 'full' (the first one has to wait); and how many were told, and the token
-- of `me` if it was granted.
-- include parts/tell.lua
local entries_max = 500
local function hand_over(me, ttl)
  local told, token = 0, nil
  for _ = 1, entries_max do
    local entry = call('LINDEX', queue, 0)
    if not entry then
      return 'nobody', told, token
    end
    local to = string.sub(entry, 1, 32)
    local claim = tonumber(string.sub(entry, 34, 41)) or 0
    local layout = tonumber(string.sub(entry, 47, 48))
    local of, units, holder = string.match(entry, '^(%a+)=(%d+);(.*)$', 112)
    local seen = call('HGET', waiters, to)
    units = units == '0' and capacity or tonumber(units)
    local there = seen and claim > 0 and layout and of == kind and units and
      string.sub(entry, 43, 45) == '000'
    if there and to ~= me then
      time = time or call('TIME')
      there = time[1] * 1000 + time[2] / 1000 - seen <= claim
    end
    -- The capacity was set lower since: its owner hears of it by asking.
    local too_much = there and units > capacity
    if there and not too_much and not fits(units) then
      return 'full', told, token
    end
    call('LPOP', queue)
    if seen then
      call('HDEL', waiters, to)
    end
    if too_much then
      redis.pcall('PUBLISH', string.sub(entry, 50, 96), to .. ';0;0;0;' .. lock)
    elseif there and to == me then
      token = grant(to, layout, units, ttl, holder)
    elseif there then
      local text = grant(to, layout, units, claim, holder)
      local heard = tell(entry, to .. ';' .. text .. ';' .. claim .. ';0;' .. lock, to, lock)
      if type(heard) == 'number' and heard > 0 then
        told = told + 1
      else
        call('HDEL', lock, to)
        used = used - units
        write_used()
        if type(heard) == 'table' then
          local keep_ms = 600000  -- as in share_acquire.lua: these may be new keys
          call('HSET', waiters, 'mute', 1)
          -- Who may not do that either joins again when it asks.
          if not me and type(redis.pcall('LPUSH', queue, entry)) == 'number' then
            call('PEXPIRE', queue, keep_ms)
            call('HSET', waiters, to, seen)
          end
          call('PEXPIRE', waiters, keep_ms)
          if not me then
            return 'full', told, token
          end
        end
      end
    end
  end
  return 'more', told, token
end
