-- Takes a fair lock of Redisson's layout if it is free and this waiter is the first, or nobody
-- waits. Otherwise it joins the queue, or stays in it. Asked again by an owner that has the lock,
-- it extends that and changes nothing else.
--
-- KEYS  1 the lock   2 the queue   3 until when each waiter keeps its place
-- ARGV  1 owner id   2 TTL in ms (positive)   3 the number of this ask, of one attempt
--       4 what the field says of the owner: "since=…;host=…;pid=…;label=…"
--       5 the waiter's entry in the queue; empty: it does not wait   6 how many ms ago it asked
--         last   7 how many may wait; beyond it they poll   8 the command that publishes
--       9 the channel of the first waiter, less ":<entry>"
-- Gives {1, "0", ask} granted, and which ask took it;
--       {0, PTTL, the owner's field} held by another; {0, ms, the first waiter's entry} nobody has
--       it, and the first keeps its place for so long. Texts are cut at 2048 bytes.
-- Cost  10 commands; granted, one for each waiter in addition.
local lock, queue, places = KEYS[1], KEYS[2], KEYS[3]
local id, ttl, entry = ARGV[1], tonumber(ARGV[2]), ARGV[5]
local call = redis.call
-- include parts/redisson_owner.lua
-- include parts/redisson_grant.lua
-- include parts/redisson_queue.lua
local held, problem = owner_of(lock)
if problem then
  return problem
end
if held and is_of(held, id) then
  return grant_again(lock, held, ttl)
end
local first = first_waiter(queue, places)
if not held and (not first or first == entry) then
  if first then
    call('LPOP', queue)
    call('ZREM', places, entry)
    take_off(places, call('ZRANGE', places, 0, -1), own_time(entry))
  end
  return grant(lock, id, '0', ARGV[3], ARGV[4], ttl)
end
if not held then
  tell_first(queue, places, ARGV[9], ARGV[8])
end
if entry ~= '' and call('ZSCORE', places, entry) then
  call('ZINCRBY', places, ARGV[6], entry)
elseif entry ~= '' and call('LLEN', queue) < tonumber(ARGV[7]) then
  local last = call('LINDEX', queue, -1)
  local ends = last and call('ZSCORE', places, last) or now + math.max(0, call('PTTL', lock))
  call('ZADD', places, string.format('%.0f', ends + own_time(entry)), entry)
  call('RPUSH', queue, entry)
end
if held then
  return {0, call('PTTL', lock), string.sub(held, 1, 2048)}
end
local left = (call('ZSCORE', places, first) or now) - now
return {0, math.max(0, left), string.sub(first, 1, 2048)}
