-- Gives the free lock to the first waiter that is there. Wants parts/grant.lua, and `queue` and
-- `waiters`, the keys. The queue is a list of entries, as their owners wrote them:
-- "id;inbox;claim TTL;block;layout;joined;holder". The hash `waiters` says when each id was last
-- heard of, in ms.
--
-- A waiter that left (not in the hash), fell silent for longer than its claim TTL, or whose process
-- is gone (nobody listens to its inbox) is passed over; if it lives, it joins again when it asks.
-- The grant carries a short claim TTL: a process that is paused with its grant costs the others no
-- more than that, and its other entries have fallen silent by then.
-- At most 500 entries in one call: a thousand dead ones take a few calls, none stops the server.
--
-- `me`: the id that asks, if any. Gives 'nobody' (the queue is empty), 'more' (call again),
-- 'handed' (somebody else has it now), or the token of `me`.
local entries_max = 500
local function hand_over(me, ttl)
  for _ = 1, entries_max do
    local entry = redis.call('LPOP', queue)
    if not entry then
      return 'nobody'
    end
    local id, inbox, claim, block, layout, holder =
      string.match(entry, '^(%x+);([^;]*);(%d+);(%d+);(%d+);%d+;(.*)$')
    local seen = id and redis.call('HGET', waiters, id)
    if seen then
      redis.call('HDEL', waiters, id)
      if id == me then
        return grant(id, tonumber(layout), tonumber(block), ttl, holder)
      end
      if now() / 1000 - seen <= tonumber(claim) then
        local token = grant(id, tonumber(layout), tonumber(block), claim, holder)
        if redis.call('PUBLISH', inbox, id .. ';' .. token .. ';' .. claim .. ';' .. block .. ';' ..
            lock) > 0 then
          return 'handed'
        end
        redis.call('DEL', lock)
      end
    end
  end
  return 'more'
end
