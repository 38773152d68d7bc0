-- A waiter's messages go elsewhere from now on: its slot has another node. Puts its new entry where
-- its old one stands, so that it keeps its place.
--
-- KEYS  1 the queue
-- ARGV  1 the old entry   2 the new one
-- Gives 1 done; 0 the old one is not there.
-- Cost  2 commands, each by the length of the queue.
if redis.call('LINSERT', KEYS[1], 'BEFORE', ARGV[1], ARGV[2]) < 1 then
  return 0
end
return redis.call('LREM', KEYS[1], 1, ARGV[1])
