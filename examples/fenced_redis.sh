#!/usr/bin/env bash
# Adds one to a number that is kept in Redis, as the holder of a lock who shows its token.
#
#   fenced_redis.sh SOCKET     the Redis that has the number; HOLDFAST_STORE has the lock
set -euo pipefail

script=$(mktemp)
trap 'rm -f "$script"' EXIT
holdfast fence redis >"$script"
export script socket=$1

# A lock's key is its name, so the data has another, should both be in one Redis.
# shellcheck disable=SC2016  # for the inner shell
holdfast run visits -- bash -euo pipefail -c '
  fenced() { redis-cli -e -s "$socket" --eval "$script" "$@"; }
  fenced visits:fence , "$HOLDFAST_TOKEN"  # before the first read
  count=$(redis-cli -e -s "$socket" GET visits:count)
  fenced visits:fence visits:count , "$HOLDFAST_TOKEN" 3 SET visits:count $((count + 1))
'
