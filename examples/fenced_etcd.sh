#!/usr/bin/env bash
# Adds one to a number that is kept in etcd, as the holder of a lock who shows its token.
#
#   fenced_etcd.sh ENDPOINTS     the etcd that has the number; HOLDFAST_STORE has the lock
set -euo pipefail

export ETCDCTL_API=3 ETCDCTL_ENDPOINTS=$1

# shellcheck disable=SC2016  # for the inner shell
holdfast run visits -- bash -euo pipefail -c '
  # If COMPARISON holds, COMMAND is run. Says SUCCESS or FAILURE.
  transaction() { printf "%s\n\n%s\n\n\n\n" "$@" | etcdctl txn | sed -n 1p; }
  token=$(printf %016d "$HOLDFAST_TOKEN")  # of one length, so that texts compare like numbers

  # Before the first read: the fence is at our token, or above it.
  transaction "version(\"visits/fence\") = \"0\"" "put visits/fence $token" >/dev/null
  transaction "value(\"visits/fence\") < \"$token\"" "put visits/fence $token" >/dev/null
  count=$(etcdctl get --print-value-only visits/count)
  # Each write: no other token has come since.
  said=$(transaction "value(\"visits/fence\") = \"$token\"" "put visits/count $((count + 1))")
  [[ $said == SUCCESS ]] || { echo "overtaken: nothing written" >&2; exit 1; }
'
