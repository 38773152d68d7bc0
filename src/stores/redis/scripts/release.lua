-- Gives the lock back if this owner holds it, straight to the next waiter; leaves the queue if the
-- owner only waits there. Never touches anybody else's.
--
-- KEYS  1 the lock   2 the slot's record   3 the queue   4 the waiters
-- ARGV  1 what the lock's value begins with: the owner's id, or "id;holdfast=…;token=…" for that
--         grant only   2 the owner's entry in the queue; empty: it never joined
--       3 what the lock's value begins with if it is to be left alone; empty or missing: nothing.
--         A release that follows an unanswered ask says so of the grant that a later ask got.
--       to leave room for foreign clients, also:
--       4 after how many hand-overs in a row, or 5 how many ms of them, the lock is left free
--       6 for how many ms
-- Gives 1 released; 3 released, and given to the next waiter; 0 nobody holds it; -1 another
--       does; 2 released, but another call is needed to find who is next; -2 nobody held it, and
--       the same.
-- Cost  3 commands when nobody waits, 9 with a hand-over, 12 to leave room.
--
-- Takes things away before it sets anything: short of memory a server refuses the one but not the
-- other, and after a first write it lets a script go on.
local lock, slot, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, time, record = redis.call, nil, nil
local held = call('GET', lock)
local ours = held and string.sub(held, 1, #ARGV[1] + 1) == ARGV[1] .. ';'
if ARGV[2] ~= '' and call('HDEL', waiters, ARGV[1]) == 1 then
  call('LREM', queue, 1, ARGV[2])
end
local spared = (ARGV[3] or '') ~= '' and held and
  string.sub(held, 1, #ARGV[3] + 1) == ARGV[3] .. ';'
if held and not ours or spared then
  return -1
end
local room, hands = 0, 0
if not ours then
  room = tonumber(call('HGET', waiters, 'room')) or 0
elseif ARGV[4] then
  -- include parts/leave_room.lua
end
if room > 0 then
  time = time or call('TIME')
  local left = room - (time[1] * 1000 + time[2] / 1000)
  if left > 0 and left <= 2000 then  -- as room_max in acquire.lua
    -- The lock stays free until then. The first waiter is told to look: token 0 is no grant. Those
    -- that are gone make way for the next.
    for _ = 1, 500 do  -- as entries_max below
      local next = call('LINDEX', queue, 0)
      local id = next and string.sub(next, 1, 32)
      local there = next and call('HEXISTS', waiters, id) == 1
      -- Where access rules refuse it, the waiter finds out by asking again.
      local heard = there and
        redis.pcall('PUBLISH', string.sub(next, 50, 96), id .. ';0;0;0;' .. lock)
      if not next or type(heard) == 'table' or heard and heard > 0 then
        break
      end
      call('LPOP', queue)
      call('HDEL', waiters, id)
    end
    return ours and 1 or 0
  end
end
-- Released, or found free: the next waiter must not wait for nothing.
local first = call('LPOP', queue)
if not first then
  if ours then
    call('DEL', lock, waiters)
  end
  return ours and 1 or 0
end
if hands > 0 then
  call('HSET', waiters, 'hands', hands)
  if hands == 1 then
    call('HSET', waiters, 'began', time[1] * 1000 + math.floor(time[2] / 1000))
  end
end
-- include parts/hand_over.lua
local result = hand_over(nil, 0, first)
if result ~= 'handed' and ours then
  call('DEL', lock)
end
if result == 'more' then
  return ours and 2 or -2
end
return not ours and 0 or result == 'handed' and 3 or 1
