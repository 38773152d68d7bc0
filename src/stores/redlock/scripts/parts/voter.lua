-- Whether this node may vote, and for this client: answers {-1, why, …} at once if not. Wants
-- `call`, `node` (the key of its record), `field` (that of the lock's counter in it; any text if
-- none is needed), the client's configuration as ARGV[1] and the run_id of this connection's server
-- as the last argument; leaves `record`: run, config, max_ttl, counter; and `own`, the counter
-- without the floor, below which no counter counts: scripts/admit.lua.
--
-- The marker and all counters are one hash, so that one cannot vanish without the other. A server
-- that was started anew has another run_id and may have lost what it had promised; uptime would be
-- told by its wall clock. Its connections are new, too, so each of them asks for the run_id once:
-- INFO in every script would double its cost.
--   {-1, 'blank', ms} it has no marker: emptied, or new; it has waited for so long, by its clock
--   {-1, 'restarted', ms} its marker is from before its last start
--   {-1, 'config', nodes} it belongs to another set of nodes: these
local record = call('HMGET', node, 'run', 'config', 'max_ttl', field, 'floor')
if record[2] and record[2] ~= ARGV[1] then
  return {-1, 'config', call('HGET', node, 'nodes')}
end
local run = ARGV[#ARGV]
if record[1] ~= run then
  local waiting, ms = call('HMGET', node, 'wait', 'since'), 0
  if string.sub(waiting[1] or '', 1, #run + 1) == run .. '@' then
    local time = call('TIME')
    ms = math.max(time[1] * 1000 + math.floor(time[2] / 1000) - waiting[2], 0)
  end
  return {-1, record[1] and 'restarted' or 'blank', ms}
end
local own = tonumber(record[4]) or 0
if record[5] and own < tonumber(record[5]) then
  record[4] = record[5]
end
