-- Gives the lock back if this owner holds it. Never touches anybody else's.
--
-- KEYS  1 the lock
-- ARGV  1 owner id
-- Gives 1 released; 0 nobody holds it; -1 somebody else does.
local held = redis.call('GET', KEYS[1])
if not held then
  return 0
end
if string.sub(held, 1, 33) ~= ARGV[1] .. ';' then
  return -1
end
redis.call('DEL', KEYS[1])
return 1
