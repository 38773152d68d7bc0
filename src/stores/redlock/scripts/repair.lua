-- Sets a lock again where it vanished, or was only set by a stale vote (acquire.lua), while a
-- majority of the other nodes still has it.
--
-- KEYS  1 the lock   2 the node's record
-- ARGV  1 the client's configuration   2 the lock's counter in the record
--       3 the value, as the majority has it   4 TTL, ms   5 its token
-- Gives {1} set; {0} another has it, or had it since; {-1, why, …} as parts/voter.lua.
--
-- A counter above the token says that another attempt was granted the lock here meanwhile. Set
-- again here, an interrupted lease would find its majority, and its holder would never hear of it:
-- A has nodes 0 and 1, and extends 0, which then loses A's key; B is granted on 0 and 2 and gives 2
-- back; A's round goes on with 1, and would repair 2, to be renewed on 1 and 2 from then on. The
-- counter is that of the lock's hash slot: some repairs are refused for nothing, which costs
-- redundancy. The floor does not say that, so it does not count here.
local call, node, field = redis.call, KEYS[2], ARGV[2]
-- include parts/voter.lua
if own > tonumber(ARGV[5]) then
  return {0}
end
local held = redis.pcall('GET', KEYS[1])
local stale = type(held) == 'string' and string.sub(held, 1, 33) == string.sub(ARGV[3], 1, 33) and
    string.find(held, '^%x+;holdfast=%d+;token=0;')
if held and not stale then
  return {0}
end
call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
if own < tonumber(ARGV[5]) then
  call('HSET', node, field, ARGV[5])
end
return {1}
