-- Extends a batch of leases on locks of Redisson's layout: as renew.lua, which says more, but that
-- a lock is a hash and has one token or none.
--
-- KEYS  the locks
-- ARGV  for each lock in order: owner id, TTL in ms (positive), and its token; 0: whatever it is
-- Gives {seconds, microseconds of the server's clock, then for each lock:
--       its token (a string; "0": it has none) extended; 0 nobody has it; -1 somebody or something
--       else does, or the owner by another grant}
-- Cost  three or four commands for each lock and one for all, which is why the server tells of
--       changes to them (renew.lua); one round trip.
-- include parts/redisson_owner.lua
local time = redis.call('TIME')
local answer = {time[1], time[2]}
local watched = {}
for i, key in ipairs(KEYS) do
  local id, ttl, given = ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1]), ARGV[3 * i]
  if not ttl or ttl <= 0 then
    return redis.error_reply('ERR renewing needs a positive TTL')
  end
  local held = owner_of(key)
  if not held then
    answer[i + 2] = 0
  elseif not is_of(held, id) then
    answer[i + 2] = -1
  else
    local token = string.match(held, ';token=(%d+);') or '0'
    if given ~= '0' and given ~= token then
      answer[i + 2] = -1
    else
      if redis.call('PTTL', key) < ttl then
        redis.call('PEXPIRE', key, ttl)
      end
      watched[#watched + 1] = key
      answer[i + 2] = token
    end
  end
end
if #watched > 0 then
  redis.call('EXISTS', unpack(watched))
end
return answer
