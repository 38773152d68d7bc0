-- Takes the lock from whoever holds it with this token.
--
-- KEYS  1 the lock
-- ARGV  1 token
-- Gives {1} broken; {0} nobody holds it; {-1, value} held otherwise (value cut at 2048 bytes).
local held = redis.call('GET', KEYS[1])
if not held then
  return {0}
end
if string.match(held, '^%x+;holdfast=%d+;token=(%d+);') ~= ARGV[1] then
  return {-1, string.sub(held, 1, 2048)}
end
redis.call('DEL', KEYS[1])
return {1}
