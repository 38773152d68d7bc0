-- Fencing inside a Redis that is the resource: it turns away holders of a lock that have been
-- overtaken. Run it with any client, by EVAL or EVALSHA. Printed by `holdfast fence redis`.
--
-- Before the first read, with the token alone:
--   EVAL script 1 FENCE TOKEN
-- lets the holder begin, and ends the turn of every holder with a lower token.
-- Each write, as often as there is something to write:
--   EVAL script N FENCE KEY… TOKEN COUNT WORD… [COUNT WORD…]…
-- runs commands, of COUNT words each, if the token is the one that was let in last:
--   EVAL script 2 fence:orders orders 1795046400000001 3 SET orders new
--
-- KEYS  1 the fence: one for each lock, in the database of the data (in a cluster in its slot, so
--         {orders}:fence and {orders}), never with a TTL   2… the keys of the commands
-- ARGV  1 the token   2… the commands, each after the number of its words
-- Gives OK, or the answers of the commands as an array; errors:
--   HOLDFAST_OVERTAKEN     a later holder has been here: stop, nothing was written
--   HOLDFAST_NOT_ADMITTED  this token was not shown before the first read, or the server has lost
--                          the fence since: show it, and read again
--   HOLDFAST_FENCE, HOLDFAST_TOKEN, HOLDFAST_COMMAND  what was passed makes no sense; nothing was
--                          written
-- If a command itself fails (WRONGTYPE, out of memory), those before it stay done, as in any
-- script.
-- Cost  2 commands to begin, 1 beside one's own to write. One round trip.
local fence, token = KEYS[1], ARGV[1]
if not fence or not token then
  return redis.error_reply('HOLDFAST_FENCE pass the fence as the first key and the token as the ' ..
    'first argument')
end

-- Whole numbers up to here are exact in Lua and in JSON.
local token_max = 9007199254740991
local function number(text)
  local value = string.match(text, '^[1-9]%d*$') and #text <= 16 and tonumber(text)
  return value and value <= token_max and value
end

local shown = number(token)
if not shown then
  return redis.error_reply('HOLDFAST_TOKEN ' .. string.format('%q', string.sub(token, 1, 32)) ..
    ' is no fencing token: a whole number from 1 to 9007199254740991')
end
local stored = redis.call('GET', fence)
local newest = stored and number(stored)
if stored and not newest then
  return redis.error_reply('HOLDFAST_FENCE the key holds something else than a token: use a key ' ..
    'of its own')
end
if newest and newest > shown then
  return redis.error_reply('HOLDFAST_OVERTAKEN by the holder with token ' .. stored)
end

if #ARGV == 1 then
  if newest ~= shown then
    redis.call('SET', fence, token)
  end
  return redis.status_reply('OK')
end
if newest ~= shown then
  return redis.error_reply('HOLDFAST_NOT_ADMITTED show the token before the first read')
end

-- What unpack() takes at once is bounded by Lua's stack.
local words_max = 1000
local commands, at = {}, 2
while at <= #ARGV do
  local words = number(ARGV[at])
  if not words or words > words_max or at + words > #ARGV then
    return redis.error_reply('HOLDFAST_COMMAND before each command stands the number of its ' ..
      'words, 1 to ' .. words_max .. ', and then the words')
  end
  commands[#commands + 1] = {at + 1, at + words}
  at = at + words + 1
end
local answers = {}
for i, words in ipairs(commands) do
  answers[i] = redis.call(unpack(ARGV, words[1], words[2]))
end
return answers
