-- Says what this node is to a set, and keeps up the wait of one that may have forgotten something.
--
-- KEYS  1 the node's record
-- ARGV  1 the client's configuration   2 max_ttl, ms   3 the client's wall clock, ms
--       4 an id for the wait, should it begin now; empty: only look, and change nothing
--       5 "counters": give them, too   6 the run_id of this connection's server
-- Gives {standing, seconds, microseconds (this node's clock), move, wait, ms, nodes, then pairs: a
--       counter's field ("floor", or "c:" and a slot) and its value}
--       standing  "votes"; "blank": it has no marker; "restarted": its marker is from before its
--                 last start; "foreign": it has voted in another set; "left": a move took it out
--       move      "complete": it changed over to this set, or joins it, and enough others have
--                 changed over (move.lua); "begun": of the others it does not know; "": neither
--       wait, ms  blank and restarted: which wait it is in, empty if none has begun, and how long
--                 that lasts
--       nodes     foreign and left: those of that set
--
-- The record of a wait holds no configuration: a node that has not voted belongs to nobody, and
-- the set that lets it in is its set.
local call, node, run = redis.call, KEYS[1], ARGV[6]
local max_ttl, wall = tonumber(ARGV[2]), tonumber(ARGV[3])
-- include parts/wait.lua
local record = call('HMGET', node, 'run', 'config', 'nodes', 'moved', 'joins', 'complete')
local standing = 'votes'
if record[2] and record[2] ~= ARGV[1] then
  standing = record[1] and 'foreign' or 'left'
elseif not record[1] then
  standing = 'blank'
elseif record[1] ~= run then
  standing = 'restarted'
end
if ARGV[4] ~= '' and (standing == 'blank' or standing == 'restarted') then
  if wait == '' then
    wait = run .. '@' .. ARGV[4]
  end
  call('HSET', node, 'wait', wait, 'since', string.format('%.0f', since), 'seen',
    string.format('%.0f', seen))
end
local move = ''
if record[4] or record[5] == ARGV[1] then
  move = record[6] and 'complete' or 'begun'
end
local answer = {standing, time[1], time[2], move, wait, left, record[3] or ''}
if ARGV[5] == 'counters' then
  local all = call('HGETALL', node)
  for i = 1, #all, 2 do
    if all[i] == 'floor' or string.sub(all[i], 1, 2) == 'c:' then
      answer[#answer + 1] = all[i]
      answer[#answer + 1] = all[i + 1]
    end
  end
end
return answer
