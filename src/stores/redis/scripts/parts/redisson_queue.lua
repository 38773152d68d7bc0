-- The queue of a fair lock of Redisson's layout: a list of waiters, first come first, and a sorted
-- set that says until when each keeps its place, in ms since 1970. Java's Redisson reads the clocks
-- of its own processes for that; here it is the server's.
--
-- Redisson's rule: a waiter that joins keeps its place for so long as the one before it, and a time
-- of its own in addition. A waiter that leaves takes that time off again, from all behind it. Only
-- the first is ever tested. So a waiter that comes to the front has its own time left, and one that
-- is gone without a word delays others by that. Waiters of ours that ask again are moved on by what
-- has gone by.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- The first that is there; nothing: none is. At most 500 are passed over in one call.
local function first_waiter(queue, places)
  local first
  for passed_over = 0, 500 do
    first = redis.call('LINDEX', queue, 0)
    local ends = first and tonumber(redis.call('ZSCORE', places, first) or '0')
    if not first or ends > now or passed_over == 500 then
      break
    end
    redis.call('LPOP', queue)
    redis.call('ZREM', places, first)
  end
  return first or nil
end
-- Of an entry of ours: its own time, in ms.
local function own_time(entry)
  return tonumber(string.match(entry, ';place=(%d+);'))
end
local function take_off(places, who, ms)
  for _, one in ipairs(who) do
    redis.call('ZINCRBY', places, -ms, one)
  end
end
-- Of the lock that nobody has: the first is told, and no other.
local function tell_first(queue, places, channel, publish)
  local first = first_waiter(queue, places)
  if first then
    redis.pcall(publish, channel .. ':' .. first, '0')
  end
end
