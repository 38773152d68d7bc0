-- Asks the holder with this token to give the lock back: renew.lua extends it no more, and tells
-- the holder why. Nobody else gets the lock before the holder releases it, or its TTL ends.
--
-- KEYS  1 the lock
-- ARGV  1 token, or another of the same block
-- Gives {1, ms until the store lets go by itself} asked, now or before; {0} nobody holds it;
--       {-1, value} held otherwise (value cut at 2048 bytes).
-- Cost  two or three commands; of a lock that several may hold it reads all of them.
local lock, mark = KEYS[1], ';recalled=1'
local held = redis.pcall('GET', lock)

local function marked(text)
  return string.sub(text, -#mark) == mark and text or text .. mark
end

if type(held) == 'table' then
  local kind = redis.pcall('HGET', lock, '#kind')
  if type(kind) ~= 'string' then
    return redis.error_reply('HOLDFAST_KIND')
  end
  local time = redis.call('TIME')
  local ms = time[1] * 1000 + math.floor(time[2] / 1000)
  local all, shown = redis.call('HGETALL', lock), nil
  for i = 1, #all, 2 do
    local expiry, text = string.match(all[i + 1], '^(%d+);%d+;(.*)$')
    expiry = #all[i] == 32 and tonumber(expiry) or 0
    if expiry > ms then
      if string.match(text, ';token=(%d+);') == ARGV[1] then
        redis.call('HSET', lock, all[i], marked(all[i + 1]))
        return {1, expiry - ms}
      end
      shown = all[i] .. ';' .. text
    end
  end
  return shown and {-1, string.sub(shown, 1, 2048)} or {0}
end
if not held then
  return {0}
end
local token = tonumber(string.match(held, '^%x+;holdfast=%d+;token=(%d+);'))
local block = tonumber(string.match(held, ';block=(%d+);')) or 1
local given = tonumber(ARGV[1])
if not token or given < token or given >= token + block then
  return {-1, string.sub(held, 1, 2048)}
end
if marked(held) ~= held then
  redis.call('APPEND', lock, mark)
end
return {1, redis.call('PTTL', lock)}
