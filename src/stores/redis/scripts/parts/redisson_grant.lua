-- Gives a lock of Redisson's layout that nobody has to an owner. `ask`: which one of the owner's
-- took it; `who`: what the field says of the owner beside that.
local function grant(lock, id, token, ask, who, ttl)
  local field = id .. ';holdfast=1;token=' .. token .. ';ask=' .. ask .. ';' .. who
  redis.call('HSET', lock, field, 1)
  redis.call('PEXPIRE', lock, ttl)
  return {1, token, ask}
end
-- Of the owner that has it and asks again. `held`: its field.
local function grant_again(lock, held, ttl)
  if redis.call('PTTL', lock) < ttl then
    redis.call('PEXPIRE', lock, ttl)
  end
  local token, ask = string.match(held, '^%x+;holdfast=%d+;token=(%d+);ask=(%d+);')
  return {1, token or '0', ask or '0'}
end
