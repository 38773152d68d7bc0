#!/usr/bin/env bash
# What Holdfast does, in twenty seconds: processes that take turns, tokens that only grow, and a
# holder that is killed and loses its lock to the next in line. Exits non-zero if anything is not
# as it says.
#
#   examples/demo.sh [path of the holdfast command]
set -euo pipefail

holdfast=${1:-holdfast}
command -v "$holdfast" >/dev/null || {
  echo "demo: cannot run '$holdfast'; usage: $0 [path of the holdfast command]" >&2
  exit 64
}
export HOLDFAST_STORE=local:
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-demo.XXXXXX")
jobs_started=()
server_was_running=no
"$holdfast" local status >/dev/null && server_was_running=yes

bold='' green='' red='' plain=''
if [[ -t 1 && -z ${NO_COLOR-} ]]; then
  bold=$'\e[1m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
fi

title() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
good() { printf '  %sok%s  %s\n' "$green" "$plain" "$1"; }
fail() {
  printf '  %sFAILED%s  %s\n' "$red" "$plain" "$1" >&2
  exit 1
}
since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }'; }
# await SECONDS COMMAND…: true as soon as the command is, false if it never was.
await() {
  local tries=$(($1 * 20))
  shift
  for ((; tries > 0; tries--)); do
    "$@" && return 0
    sleep 0.05
  done
  return 1
}
# A zombie is dead; it waits for its parent to ask for its exit status.
dead() { ! grep -q '^State:[[:space:]]*[^ZX]' "/proc/$1/status" 2>/dev/null; }

cleanup() {
  local job
  for job in "${jobs_started[@]}"; do kill "$job" 2>/dev/null || true; done
  wait 2>/dev/null || true
  # The server is left as it was found, unless another process has begun to use it.
  if [[ $server_was_running == no && $("$holdfast" status --json 2>/dev/null) == '[]' ]]; then
    "$holdfast" local stop >/dev/null || true
  fi
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# --------------------------------------------------------------------------------------------------
title "1. Five processes want to change one file. One at a time, please."
echo "  Each runs: holdfast run counter -- (read the number, wait a little, write it plus one)"
echo
echo 0 >"$work/counter"
touch "$work/tokens"
# shellcheck disable=SC2016  # for the workers' shell to expand, not for ours
add_one='
  old=$(cat "$1/counter")
  sleep 0.3
  echo $((old + 1)) >"$1/counter"
  echo "$HOLDFAST_TOKEN" >>"$1/tokens"
  echo "  process $2 held the lock with token $HOLDFAST_TOKEN: $old -> $((old + 1))"
'
workers=()
for i in 1 2 3 4 5; do
  "$holdfast" run "demo/counter/$$" --quiet --label "demo $i" -- \
    bash -c "$add_one" worker "$work" "$i" &
  workers+=($!)
  jobs_started+=($!)
done
for worker in "${workers[@]}"; do wait "$worker" || fail "a process ended with status $?"; done
echo
[[ $(cat "$work/counter") == 5 ]] || fail "the counter is $(cat "$work/counter"), not 5"
good "the counter is 5: no change was overwritten"
sort -n -u -c "$work/tokens" 2>/dev/null || fail "tokens do not strictly increase"
[[ $(wc -l <"$work/tokens") == 5 ]] || fail "five holders, but $(wc -l <"$work/tokens") tokens"
good "every holder's token is higher than the one before: what is protected can tell late writes"

# --------------------------------------------------------------------------------------------------
title "2. A holder is killed with kill -9. Its guardian ends the command and gives the lock back."
echo "  holdfast run deploy -- (something that takes for ever)"
echo
lock=demo/deploy/$$
# shellcheck disable=SC2016
"$holdfast" run "$lock" --label victim -- \
  bash -c 'echo "$HOLDFAST_TOKEN" >"$1/first"; echo $$ >"$1/pid"; exec sleep 600' it "$work" &
wrapper=$!
disown "$wrapper" # or the shell itself would report its end
jobs_started+=("$wrapper")
await 10 test -s "$work/pid" || fail "the first holder did not start"
command_pid=$(cat "$work/pid")
"$holdfast" status "$lock" | sed 's/^/  /'

# shellcheck disable=SC2016
"$holdfast" run "$lock" --quiet --label heir -- \
  bash -c 'kill -0 "$2" 2>/dev/null && exit 9; echo "$HOLDFAST_TOKEN" >"$1/second"' \
  it "$work" "$command_pid" &
heir=$!
jobs_started+=("$heir")
sleep 0.5
[[ ! -e $work/second ]] || fail "two hold the lock at once"
echo
echo "  Another process waits for it. Now: kill -9 $wrapper (the holder)"
killed_at=$EPOCHREALTIME
kill -9 "$wrapper"
await 10 dead "$command_pid" || fail "the killed holder's command still runs"
good "its command is gone after $(since "$killed_at"): a guardian saw to it, in time"
wait "$heir" || fail "the waiting process ended with status $? (9: that command still ran)"
good "the next in line has had the lock after $(since "$killed_at"), when that command was gone"
(($(cat "$work/second") > $(cat "$work/first"))) || fail "its token is not higher"
good "and its token is higher: $(cat "$work/first") -> $(cat "$work/second")"

title "That is Holdfast. The same with any Redis: HOLDFAST_STORE=redis://host holdfast run …"
