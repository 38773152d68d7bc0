-- Extends a batch of holds on read/write locks of Redisson's layout: as renew.lua, which says more,
-- but that there are no tokens. A hold that has ended is not brought back, though others have the
-- lock: any of them may have given it up for all.
--
-- KEYS  the locks
-- ARGV  for each lock in order: owner id, TTL in ms (positive), and its token, which is 0
-- Gives {seconds, microseconds of the server's clock, then for each lock:
--       "0" (a string) extended; 0 nobody has it, or the hold has ended; -1 others have it}
-- Cost  seven commands at most for each lock, one round trip for all of them.
-- include parts/redisson_holds.lua
-- include parts/redisson_extend_hold.lua
local time = redis.call('TIME')
local answer = {time[1], time[2]}
for i, lock in ipairs(KEYS) do
  local id, ttl = ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1])
  if not ttl or ttl <= 0 then
    return redis.error_reply('ERR renewing needs a positive TTL')
  end
  answer[i + 2] = extend_hold(lock, id, ttl)
end
return answer
