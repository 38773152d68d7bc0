-- Who has a lock of Redisson's layout: the name of the only field of its hash. Nothing if nobody
-- has it. Something that is not a lock belongs to nobody we know: then the name is empty, and the
-- server's complaint comes along. Of a hash with several fields, as read/write locks have, the
-- name is that of any one of them.
local function owner_of(lock)
  local fields = redis.pcall('HLEN', lock)
  if type(fields) == 'table' then
    return '', fields
  end
  if fields == 0 then
    return nil
  end
  if fields == 1 then
    return redis.call('HKEYS', lock)[1]
  end
  return redis.call('HSCAN', lock, 0, 'COUNT', 1)[2][1] or ''
end
-- Whether that is the text of this owner, or of this grant.
local function is_of(held, whose)
  return string.sub(held, 1, #whose + 1) == whose .. ';'
end
