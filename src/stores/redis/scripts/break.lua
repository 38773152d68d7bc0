-- Takes the lock from whoever holds it with this token, or another of the same block, and gives it
-- to the next waiter. Of a lock that several hold, only what this holder has.
--
-- KEYS  1 the lock   2 the slot's record   3 the queue   4 the waiters
-- ARGV  1 token
-- Gives {1} broken; {0} nobody holds it; {-1, value} held otherwise (value cut at 2048 bytes).
local lock, slot, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, time, record = redis.call, nil, nil
local held = redis.pcall('GET', lock)
if type(held) == 'table' then
  local id, shown = '', nil
  -- include parts/shares.lua
  if not read_lock() then
    return redis.error_reply('HOLDFAST_KIND')
  end
  local all = call('HGETALL', lock)
  for i = 1, #all, 2 do
    local value = as_value(all[i], all[i + 1])
    if value and string.match(value, ';token=(%d+);') == ARGV[1] then
      call('HDEL', lock, all[i])
      used = used - string.match(all[i + 1], '^%d+;(%d+);')
      write_used()
      hand_over(nil, 0)
      return {1}
    end
    shown = value and (not shown or value < shown) and value or shown
  end
  return shown and {-1, string.sub(shown, 1, 2048)} or {0}
end
-- include parts/hand_over.lua
if not held then
  return {0}
end
local token = tonumber(string.match(held, '^%x+;holdfast=%d+;token=(%d+);'))
local block = tonumber(string.match(held, ';block=(%d+);')) or 1
local given = tonumber(ARGV[1])
if not token or given < token or given >= token + block then
  return {-1, string.sub(held, 1, 2048)}
end
call('DEL', lock)
hand_over(nil, 0)
return {1}
