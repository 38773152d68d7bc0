-- Sends a waiter its grant: `message`, to the inbox that its entry names. Gives how many heard it,
-- or the error with which access rules refuse it.
--
-- In a cluster every node passes on what any of them publishes, and PUBLISH counts those only who
-- listen where it runs. A waiter that listens elsewhere would read of a grant that is taken back in
-- the same breath, because nobody seems to hear it. So it is only told to ask (token 0), and asks
-- the right node then. Such inboxes have an @ in their names.
local function tell(entry, message, id, lock)
  local inbox = string.sub(entry, 50, 96)
  if string.byte(inbox, 15) == 64 then
    local here = redis.pcall('PUBSUB', 'NUMSUB', inbox)
    if here.err then
      return here
    end
    if here[2] == 0 then
      redis.pcall('PUBLISH', inbox, id .. ';0;0;0;' .. lock)
      return 0
    end
  end
  return redis.pcall('PUBLISH', inbox, message)
end
