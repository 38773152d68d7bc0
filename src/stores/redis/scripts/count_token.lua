-- Counts a token for the holder of a lock, on a key that clients of another kind count as well. In
-- one script with the look at the lock: counted by a former holder that was paused, it would be
-- higher than the token of the next.
--
-- KEYS  1 the lock   2 the counter
-- ARGV  1 owner id
-- Gives the count (a string); 0 nobody holds the lock; -1 another does, and nothing is counted
-- Cost  two commands, one round trip.
local held = redis.call('GET', KEYS[1])
if not held then
  return 0
end
if string.sub(held, 1, 33) ~= ARGV[1] .. ';' then
  return -1
end
return string.format('%.0f', redis.call('INCR', KEYS[2]))
