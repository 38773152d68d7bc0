-- Extends the hold that an owner of ours has on a read/write lock, and never shortens one. "0": it
-- is extended; 0: nobody has the lock, or the hold has ended; -1: others have it. And its field.
local function extend_hold(lock, id, ttl)
  local field, hold = find_hold(lock, id)
  if not field then
    return hold
  end
  local left = redis.call('PTTL', hold)
  if left == -2 then
    return 0
  end
  if left < ttl then
    redis.call('PEXPIRE', hold, ttl)
  end
  if redis.call('PTTL', lock) < ttl then
    redis.call('PEXPIRE', lock, ttl)
  end
  return '0', field
end
