-- Makes the writer of a read/write lock of Redisson's layout a reader of it, extends its hold, and
-- tells all waiters: readers come in. A reader stays one, so this may be repeated.
--
-- KEYS  1 the lock   2 the channel of its waiters
-- ARGV  1 owner id   2 TTL in ms (positive)   3 the command that publishes
-- Gives {what redisson_rw_renew.lua gives for one lock, 0}, in the form of share_downgrade.lua.
-- Cost  13 commands.
local lock, id = KEYS[1], ARGV[1]
-- include parts/redisson_holds.lua
-- include parts/redisson_extend_hold.lua
local said, field = extend_hold(lock, id, tonumber(ARGV[2]))
if field and field ~= id then
  redis.call('RENAME', hold_of(lock, field, 1), hold_of(lock, id, 1))
  redis.call('HDEL', lock, field)
  redis.call('HSET', lock, id, 1)
  redis.call('HSET', lock, 'mode', 'read')
  redis.pcall(ARGV[3], KEYS[2], '1')
end
return {said, 0}
