-- Takes a lock of Redisson's layout: a hash with one field, which names the owner, and the number
-- of holds, which is always 1 here because re-entry is counted in the process. Asked again by an
-- owner that has it, it extends the lock and changes nothing else.
--
-- KEYS  1 the lock   2 the counter of its tokens; missing: it has none
-- ARGV  1 owner id   2 TTL in ms (positive)   3 the number of this ask, of one attempt
--       4 what the field says of the owner: "since=…;host=…;pid=…;label=…"
-- Gives {1, token, ask} granted: the token as text, "0" without a counter, and which ask took it;
--       {0, PTTL, the owner's field, cut at 2048 bytes} busy
-- Cost  3 commands, and one for a token.
local lock, counter, id, ttl = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])
local call = redis.call
-- include parts/redisson_owner.lua
-- include parts/redisson_grant.lua
local held, problem = owner_of(lock)
if problem then
  return problem
end
if not held then
  local token = counter and string.format('%.0f', call('INCR', counter)) or '0'
  return grant(lock, id, token, ARGV[3], ARGV[4], ttl)
end
if not is_of(held, id) then
  return {0, call('PTTL', lock), string.sub(held, 1, 2048)}
end
return grant_again(lock, held, ttl)
