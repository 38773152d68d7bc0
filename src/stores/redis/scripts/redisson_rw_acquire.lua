-- Takes a read/write lock of Redisson's layout, to read or to write. Asked again by an owner that
-- has it that way, it extends the hold and changes nothing else.
--
-- KEYS  1 the lock; names of its holds are made of it (parts/redisson_holds.lua)
-- ARGV  1 owner id   2 TTL in ms (positive)   3 the number of this ask, of one attempt
--       4 what is told of the owner: "since=…;host=…;pid=…;label=…"
--       5 "read" or "write"   6 how many readers there may be
-- Gives {1, "0", ask} granted, and which ask took it;
--       {0, PTTL, one that has it: of ours what it says of itself, of others the field} busy
-- Cost  7 commands.
local lock, id, ttl, wanted = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[5]
local call = redis.call
-- include parts/redisson_holds.lua
local mode, problem = mode_of(lock)
if problem then
  return problem
end
local field = wanted == 'write' and id .. ':write' or id
local hold = hold_of(lock, field, 1)
local function extend()
  if call('PTTL', lock) < ttl then
    call('PEXPIRE', lock, ttl)
  end
end
local text = mode and call('HEXISTS', lock, field) == 1 and call('GET', hold)
if text then
  if call('PTTL', hold) < ttl then
    call('PEXPIRE', hold, ttl)
  end
  extend()
  return {1, '0', string.match(text, ';ask=(%d+);') or '0'}
end
local function has_room()
  return call('HLEN', lock) <= tonumber(ARGV[6])
end
local enters = not mode or mode == 'read' and wanted == 'read'
if enters and not has_room() then
  longest_hold(lock) -- takes the dead away
  enters = has_room()
end
if not enters then
  local some = call('HSCAN', lock, 0, 'COUNT', 2)[2]
  local one = some[1] == 'mode' and some[3] or some[1]
  return {0, call('PTTL', lock), one and described(lock, one) or ''}
end
if not mode then
  call('HSET', lock, 'mode', wanted)
end
call('HSET', lock, field, 1)
call('SET', hold, id .. ';holdfast=1;token=0;ask=' .. ARGV[3] .. ';' .. ARGV[4], 'PX', ttl)
extend()
return {1, '0', ARGV[3]}
