-- Gives back the units of this owner, to the next waiters; leaves the queue if the owner only waits
-- there. Never touches anybody else's. As release.lua does for a mutex, and answered alike.
--
-- KEYS  1 the lock   2 the slot's record   3 the queue   4 the waiters
-- ARGV  1 the owner's id, or "id;holdfast=…;token=…" for that grant only   2 the owner's entry in
--         the queue; empty: it never joined
--       3 how the grant begins that is to be left alone; empty: none. A release that follows an
--         unanswered ask says so of the grant that a later ask got.
--       4 the kind of lock, and 5 its units, should there be waiters and no lock. Empty: not known.
-- Gives 1 released; 3 released, and given to waiters; 0 this owner holds nothing; -1 it does, by
--       another grant, or by the one that was to be left alone; 2 released, but another call is
--       needed to find who is next; -2 nothing was held, and the same.
-- Cost  5 commands when nobody waits, 7 for the last holder.
--
-- A waiter that leaves the queue may have stood in the way of others: in any case those are looked
-- for.
local lock, slot, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, id, time, record = redis.call, string.sub(ARGV[1], 1, 32), nil, nil
-- The common case by itself, before the functions that the others need are made: nobody waits, and
-- the lease ends in another second than this, so that it has not ended.
if ARGV[2] == '' and (ARGV[3] or '') == '' and ARGV[1] == id and call('EXISTS', queue) == 0 then
  local mine = redis.pcall('HGET', lock, id)
  local second, units = string.match(type(mine) == 'string' and mine or '', '^(%d+)%d%d%d;(%d+);')
  if second and second - call('TIME')[1] > 0 then
    call('HDEL', lock, id)
    if call('HINCRBY', lock, '#used', '-' .. units) <= 0 then
      call('DEL', call('HGET', lock, '#kept') and waiters or lock, waiters)
    end
    return 1
  end
end
-- include parts/shares.lua
if ARGV[2] ~= '' and call('HDEL', waiters, id) == 1 then
  call('LREM', queue, 1, ARGV[2])
end
if not read_lock() then
  return 0
end
local value = as_value(id, mine)
local function begins(with)
  return value and with ~= '' and string.sub(value, 1, #with + 1) == with .. ';'
end
local ours, left_alone = begins(ARGV[1]), begins(ARGV[3])
if left_alone or value and not ours then
  ours = false
elseif mine then
  local units = string.match(mine, '^%d+;(%d+);')
  call('HDEL', lock, id)
  used = used - (units or 0)
  write_used()
end
if not kept then
  kind, capacity = kind or ARGV[4], capacity or tonumber(ARGV[5])
end
local result, told = 'nobody', 0
if kind and capacity then
  result, told = hand_over(nil, 0)
end
if result == 'nobody' and used == 0 then
  call('DEL', waiters)
end
if result == 'more' then
  return ours and 2 or -2
end
if value and not ours then
  return -1
end
return not ours and 0 or told > 0 and 3 or 1
