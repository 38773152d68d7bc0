-- Gives the free lock to the first waiter that is there. Wants `call`, and the keys `lock`, `slot`,
-- `queue` and `waiters`; `time` and `record` (the slot's layout and token) are used if known.
--
-- The token is max(counter + 1, the server's clock in µs). The clock makes a counter harmless that
-- came back old or not at all; the counter makes a clock harmless that stepped back. Numbers of
-- that size must not go through tostring(), which prints 1.79e+15. `block` tokens are taken at
-- once: the counter then stands at the last of them.
local function grant(id, layout, block, ttl, holder)
  time = time or call('TIME')
  record = record or call('HMGET', slot, 'layout', 'token')
  local token = math.max((tonumber(record[2]) or 0) + 1, time[1] * 1000000 + time[2])
  local text = string.format('%.0f', token)
  record[2] = string.format('%.0f', token + block - 1)
  if (tonumber(record[1]) or 0) < tonumber(layout) then
    record[1] = layout
    call('HSET', slot, 'layout', layout, 'token', record[2])
  else
    call('HSET', slot, 'token', record[2])
  end
  call('SET', lock, id .. ';holdfast=' .. layout .. ';token=' .. text .. ';block=' .. block ..
    ';since=' .. time[1] .. '000;' .. holder, 'PX', ttl)
  return text
end

-- The queue is a list of entries, as their owners wrote them, in fields of fixed width but for the
-- last: "id;claim TTL;block;layout;inbox;joined;holder". The hash `waiters` says when each id was
-- last heard of, in ms.
--
-- A waiter that left (not in the hash), fell silent for longer than its claim TTL, or whose process
-- is gone (nobody listens to its inbox) is passed over; if it lives, it joins again when it asks.
-- An entry that makes no sense is passed over, too: anybody may write here.
-- The grant carries a short claim TTL: a process that is paused with its grant costs the others no
-- more than that, and its other entries have fallen silent by then.
-- Where access rules refuse the message, the one that asks gets the lock; a release leaves it free
-- and the queue as it is. The field `mute` of `waiters` tells those who wait to ask often.
-- At most 500 entries in one call: a thousand dead ones take a few calls, none stops the server.
--
-- `me`: the id that asks, if any. `entry`: the first waiter's, if it was taken off already.
-- Gives 'nobody' (the queue is empty), 'more' (call again), 'handed' (another has it now), or
-- the token of `me`.
-- include parts/tell.lua
local entries_max = 500
local function hand_over(me, ttl, entry)
  for _ = 1, entries_max do
    entry = entry or call('LPOP', queue)
    if not entry then
      return 'nobody'
    end
    local id = string.sub(entry, 1, 32)
    local claim = tonumber(string.sub(entry, 34, 41)) or 0
    local block = tonumber(string.sub(entry, 43, 45)) or 0
    local layout = tonumber(string.sub(entry, 47, 48))
    local seen = call('HGET', waiters, id)
    if seen then
      call('HDEL', waiters, id)
      seen = tonumber(seen)
    end
    if seen and claim > 0 and block > 0 and layout then
      local holder = string.sub(entry, 112)
      if id == me then
        return grant(id, layout, block, ttl, holder)
      end
      time = time or call('TIME')
      if time[1] * 1000 + time[2] / 1000 - seen <= claim then
        local token = grant(id, layout, block, claim, holder)
        local heard = tell(entry, id .. ';' .. token .. ';' .. claim .. ';' .. block .. ';' .. lock,
          id, lock)
        if type(heard) == 'number' and heard > 0 then
          return 'handed'
        end
        call('DEL', lock)
        if type(heard) == 'table' then
          local keep_ms = 600000  -- as in acquire.lua: these may be new keys
          call('HSET', waiters, 'mute', 1)
          -- Who may not do that either joins again when it asks.
          if not me and type(redis.pcall('LPUSH', queue, entry)) == 'number' then
            call('PEXPIRE', queue, keep_ms)
            call('HSET', waiters, id, seen)
          end
          call('PEXPIRE', waiters, keep_ms)
          if not me then
            return 'nobody'
          end
        end
      end
    end
    entry = nil
  end
  return 'more'
end
