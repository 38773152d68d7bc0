-- Extends a batch of leases here, each only if its owner still has the lock. Never brings one back,
-- and never shortens one.
--
-- KEYS  1 the node's record, then the locks
-- ARGV  1 the client's configuration, then for each lock: owner id, TTL in ms
-- Gives {seconds, microseconds of the server's clock, then for each lock: its value, extended;
--       0 nobody has it, or its owner has it by a stale vote only (acquire.lua), which proves
--       nothing about the time before; -1 somebody or something else does}, or {-1, why, …} as
--       parts/voter.lua.
local call, node, field = redis.call, KEYS[1], 'none'
-- include parts/voter.lua
local time = call('TIME')
local answer = {time[1], time[2]}
for i = 2, #KEYS do
  local ttl = tonumber(ARGV[2 * i - 1])
  if not ttl or ttl <= 0 or ttl > tonumber(record[3]) then
    return {-1, 'ttl', record[3]}
  end
  local held = redis.pcall('GET', KEYS[i])
  if not held then
    answer[i + 1] = 0
  elseif type(held) ~= 'string' or string.sub(held, 1, 33) ~= ARGV[2 * i - 2] .. ';' then
    answer[i + 1] = -1
  elseif string.find(held, '^%x+;holdfast=%d+;token=0;') then
    answer[i + 1] = 0
  else
    if call('PTTL', KEYS[i]) < ttl then
      call('PEXPIRE', KEYS[i], ttl)
    end
    answer[i + 1] = held
  end
end
return answer
