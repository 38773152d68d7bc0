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
-- Gives {1, token} granted;
--       {0, PTTL, value} held by somebody else (value cut at 2048 bytes);
--       {2, PTTL, value, counter, head} the same, and queued: a grant with a token above `counter`
--           will be sent to the inbox. head is 1 if the holder is foreign, so that nobody will
--           tell, and this attempt is the first in line, which has to look for itself;
--       {3} free, but it takes another call to find out for whom;
--       errors HOLDFAST_LAYOUT n: written by a version too new for us; HOLDFAST_FULL: the queue.
-- Cost  6 commands when free, 3 when busy, 6 when joining. One round trip.
local lock, slot, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local held = redis.call('GET', lock)
-- The common case by itself, before the functions that the others need are made: it takes half the
-- time. The same as grant() below, for one token and a record in our own layout.
if not held and ARGV[8] == '1' and redis.call('EXISTS', queue) == 0 then
  local record = redis.call('HMGET', slot, 'layout', 'token')
  if record[1] == ARGV[3] then
    local time = redis.call('TIME')
    local token = time[1] * 1000000 + time[2]
    local last = tonumber(record[2])
    if last >= token then
      token = last + 1
    end
    local text = string.format('%.0f', token)
    redis.call('HSET', slot, 'token', text)
    redis.call('SET', lock, ARGV[1] .. ';holdfast=' .. ARGV[3] .. ';token=' .. text ..
      ';block=1;since=' .. time[1] .. '000;' .. ARGV[5], 'PX', ARGV[2])
    return {1, text}
  end
end
-- include parts/grant.lua
-- include parts/hand_over.lua
-- Should all waiters die, nothing of theirs stays for longer than this.
local keep_ms = 600000

local function join()
  if redis.call('HSET', waiters, ARGV[1], string.format('%.0f', math.floor(now() / 1000))) == 1 then
    local length = redis.call('RPUSH', queue, ARGV[6])
    if length > tonumber(ARGV[7]) then
      redis.call('RPOP', queue)
      redis.call('HDEL', waiters, ARGV[1])
      return false
    end
    if length > 1 then
      return true
    end
  end
  redis.call('PEXPIRE', queue, keep_ms)
  redis.call('PEXPIRE', waiters, keep_ms)
  return true
end

local function queued()
  local ours = string.find(held, ';holdfast=', 33, true) == 33
  local head = not ours and redis.call('LINDEX', queue, 0) == ARGV[6]
  return {2, redis.call('PTTL', lock), string.sub(held, 1, 2048),
    redis.call('HGET', slot, 'token') or '0', head and 1 or 0}
end

if held then
  if string.sub(held, 1, 33) == ARGV[1] .. ';' then
    if redis.call('PTTL', lock) < tonumber(ARGV[2]) then
      redis.call('PEXPIRE', lock, ARGV[2])
    end
    return {1, string.match(held, ';token=(%d+);')}
  end
  if ARGV[6] == '' then
    return {0, redis.call('PTTL', lock), string.sub(held, 1, 2048)}
  end
  if not join() then
    return redis.error_reply('HOLDFAST_FULL')
  end
  return queued()
end

local newest = read_record()
if newest > tonumber(ARGV[4]) then
  return redis.error_reply('HOLDFAST_LAYOUT ' .. newest)
end
local layout = tonumber(ARGV[3])
if redis.call('EXISTS', queue) == 0 then
  return {1, grant(ARGV[1], layout, tonumber(ARGV[8]), ARGV[2], ARGV[5])}
end
-- Free, but somebody waits: the holder expired, or a foreign client deleted it, and told nobody.
if ARGV[6] ~= '' and not join() then
  return redis.error_reply('HOLDFAST_FULL')
end
local result = hand_over(ARGV[1], ARGV[2])
if result == 'more' then
  return {3}
end
if result == 'nobody' then
  return {1, grant(ARGV[1], layout, tonumber(ARGV[8]), ARGV[2], ARGV[5])}
end
if result ~= 'handed' then
  return {1, result}
end
held = redis.call('GET', lock)
if ARGV[6] ~= '' then
  return queued()
end
return {0, redis.call('PTTL', lock), string.sub(held, 1, 2048)}
