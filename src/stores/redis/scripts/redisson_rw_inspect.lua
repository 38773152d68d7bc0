-- Says who has a read/write lock of Redisson's layout, without changing anything.
--
-- KEYS  1 the lock
-- ARGV  1 how many holders to show   2 the units of a writer; a reader has one
-- Gives what inspect.lua gives of one lock that several may hold: {a list, or false if nobody has
--       it; the PTTL; and that no waiters are known: they only listen}.
-- Cost  two commands for each holder.
local lock, shown, units = KEYS[1], tonumber(ARGV[1]), ARGV[2]
-- include parts/redisson_holds.lua
local mode, problem = mode_of(lock)
if problem then
  return problem
end
local left = redis.call('PTTL', lock)
if not mode then
  return {false, left, 0, {}}
end
local all, holding, used, who = redis.call('HKEYS', lock), 0, 0, {}
for _, field in ipairs(all) do
  local ours = string.match(field, '^%x+$') and #field == 32
  local ended = ours and redis.call('EXISTS', hold_of(lock, field, 1)) == 0
  if field ~= 'mode' and not ended then
    local has = string.sub(field, -6) == ':write' and units or '1'
    holding, used = holding + 1, math.max(used + 1, tonumber(has))
    if holding <= shown then
      who[#who + 1] = has
      who[#who + 1] = described(lock, field)
    end
  end
end
return {{'shared', tonumber(units), used, holding, left, unpack(who)}, left, 0, {}}
