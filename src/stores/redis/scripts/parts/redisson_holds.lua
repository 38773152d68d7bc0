-- Who holds a read/write lock of Redisson's layout. Its hash has a field `mode`, which is "read" or
-- "write", and one for each owner: a reader's is the owner, a writer's is the owner and ":write".
-- The value is how many holds the owner has. Each hold of a reader has a key of its own, which
-- says by its TTL how long it lasts; the TTL of the hash is that of the longest.
--
-- Holds of ours: the owner is 32 hex digits, has one hold, and that has a key when it writes, too.
-- The key's value says who it is: "<owner>;holdfast=1;token=0;ask=…;since=…;host=…;pid=…;label=…".
local function tagged(lock)
  return string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
end
local function hold_of(lock, field, number)
  return tagged(lock) .. ':' .. field .. ':rwlock_timeout:' .. number
end
-- "read" or "write". False: nobody has it. Something that is no such lock: false, and why.
local function mode_of(lock)
  local mode = redis.pcall('HGET', lock, 'mode')
  if type(mode) == 'table' then
    return false, mode
  end
  if not mode and redis.call('EXISTS', lock) == 1 then
    return false, redis.error_reply('WRONGTYPE the key holds another kind of lock')
  end
  return mode
end
-- Of this owner of ours: the field under which it has the lock, the key of its hold, and the mode.
-- If it has not: nothing, and what to answer: 0, nobody has; -1, others have, or it is none.
local function find_hold(lock, id)
  local mode, problem = mode_of(lock)
  if not mode then
    return nil, problem and -1 or 0
  end
  for _, field in ipairs({id, id .. ':write'}) do
    if redis.call('HEXISTS', lock, field) == 1 then
      return field, hold_of(lock, field, 1), mode
    end
  end
  return nil, -1
end
-- Of a field: what it says of itself, if it is ours; else the field.
local function described(lock, field)
  local text = redis.call('GET', hold_of(lock, field, 1))
  local ours = text and string.sub(text, 1, 33) == string.sub(field, 1, 32) .. ';'
  return string.sub(ours and text or field, 1, 2048)
end
-- For how many ms the longest hold lasts; nothing: all have ended. Fields of ours that have ended
-- are taken away; of Java's Redisson leaves them, and would miss them. Of one owner the 100 latest
-- holds are looked at.
local function longest_hold(lock)
  local all, longest = redis.call('HGETALL', lock), nil
  for i = 1, #all, 2 do
    local field, holds = all[i], tonumber(all[i + 1]) or 0
    local left = -2
    for number = holds, math.max(1, holds - 99), -1 do
      left = math.max(left, redis.call('PTTL', hold_of(lock, field, number)))
    end
    if left > 0 then
      longest = math.max(longest or 0, left)
    elseif left == -2 and string.match(field, '^%x+$') and #field == 32 then
      redis.call('HDEL', lock, field)
    end
  end
  return longest
end
