-- Extends a batch of leases, each only if its owner still holds it by the same grant. Never brings
-- one back, and never shortens one: a late request with a short TTL must not take from a later,
-- longer one.
--
-- KEYS  the locks
-- ARGV  for each lock in order: owner id, with # before it if the lock is one that several may hold
--       (parts/shares.lua); TTL in ms (positive); and its token, which is any of the grant's block:
--       hand-over within a process uses the later ones; 0: whatever it is
-- Gives {seconds, microseconds of the server's clock, then for each lock:
--       its token (a string) extended, and for token 0 the last of the block, which no thread of
--       the former holder was given before its own; 0 nobody holds it; -1 somebody or something
--       else does, or the owner by another grant; -2 it was asked to give the lock back
--       (recall.lua), and is not extended}
-- Cost  two commands for each lock, four if several may hold it, and two for all; one round trip.
--
-- On a connection with client-side tracking the server tells of changes to the keys that were read
-- last; a write of our own ends that for its key. So locks that one holds are read once more at
-- the end, and those that several hold are not read after they were written: others change them
-- all the time, with every right. Tracking makes a command that reads cost twice as much, which is
-- why all values are read by one.
local time = redis.call('TIME')
local answer = {time[1], time[2]}
local recalled = ';recalled=1'
local ms = time[1] * 1000 + math.floor(time[2] / 1000)

-- A holder's field, whose expiry is beside its units. Short of memory a server refuses what sets,
-- but not after something that takes away: so that comes first, of a field that there never is.
local function renew_share(key, id, wanted, given)
  local field = redis.pcall('HGET', key, id)
  local expiry, units, text = string.match(type(field) == 'string' and field or '',
    '^(%d+);(%d+);(.*)$')
  expiry = tonumber(expiry)
  if not expiry or expiry <= ms then
    return 0
  end
  local token = string.match(text, ';token=(%d+);')
  if given ~= '0' and given ~= token then
    return -1
  elseif string.sub(text, -#recalled) == recalled then
    return -2
  end
  -- One whose capacity a person has set does not expire.
  local left = redis.call('PTTL', key)
  if expiry < ms + wanted then
    redis.call('HDEL', key, '#')
    redis.call('HSET', key, id, ms + wanted .. ';' .. units .. ';' .. text)
  end
  if left >= 0 and left < wanted then
    redis.call('PEXPIRE', key, wanted)
  end
  return token
end

local values, watched = redis.call('MGET', unpack(KEYS)), {}
for i, key in ipairs(KEYS) do
  local id, ttl, given = ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1]), ARGV[3 * i]
  if not ttl or ttl <= 0 then
    return redis.error_reply('ERR renewing needs a positive TTL')
  end
  local shared = string.sub(id, 1, 1) == '#'
  local held = not shared and values[i]
  if shared then
    answer[i + 2] = renew_share(key, string.sub(id, 2), ttl, given)
  elseif not held and redis.call('EXISTS', key) == 0 then
    answer[i + 2] = 0
  elseif not held or string.sub(held, 1, 33) ~= id .. ';' then
    answer[i + 2] = -1
  else
    local first = tonumber(string.match(held, ';token=(%d+);')) or 0
    local last = first + (tonumber(string.match(held, ';block=(%d+);')) or 1) - 1
    local token = tonumber(given) or 0
    if token ~= 0 and (token < first or token > last) then
      answer[i + 2] = -1
    elseif string.sub(held, -#recalled) == recalled then
      answer[i + 2] = -2
    else
      if redis.call('PTTL', key) < ttl then
        redis.call('PEXPIRE', key, ttl)
      end
      watched[#watched + 1] = key
      answer[i + 2] = token ~= 0 and given or string.format('%.0f', last)
    end
  end
end
if #watched > 0 then
  redis.call('EXISTS', unpack(watched))
end
return answer
