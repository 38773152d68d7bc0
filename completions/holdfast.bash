# Completion of the holdfast command for bash. Install as
# share/bash-completion/completions/holdfast, or source it from ~/.bashrc.
# Needs nothing but bash; uses the bash-completion package where it is there.
# Lock names are not completed: that would ask a store, perhaps a slow one, at every TAB.

_holdfast() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]-}
  COMPREPLY=()

  local i
  if [[ $verb == run ]]; then
    for ((i = 2; i < COMP_CWORD; i++)); do
      [[ ${COMP_WORDS[i]} == -- ]] || continue
      # What comes after -- is somebody else's command line.
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      elif ((i + 1 == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      fi
      return 0
    done
  fi

  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(
      compgen -W 'run lock renew unlock status break local redlock help --help --version' -- "$cur"
    )
    return 0
  fi

  case $prev in
    --store | --to)
      mapfile -t COMPREPLY < <(compgen -W 'local: unix:/ redis:// redlock:// etcd://' -- "$cur")
      [[ -n ${COMP_TYPE-} ]] && compopt -o nospace 2>/dev/null
      return 0
      ;;
    --ttl | --max-hold | --at-least)
      mapfile -t COMPREPLY < <(compgen -W '10s 30s 1m 5m 1h' -- "$cur")
      return 0
      ;;
    --wait | --unreachable)
      mapfile -t COMPREPLY < <(compgen -W '0 10s 1m forever' -- "$cur")
      return 0
      ;;
    --format)
      mapfile -t COMPREPLY < <(compgen -W \
        'holdfast redisson redisson-fenced redisson-fair redisson-rw' -- "$cur")
      return 0
      ;;
    --password-file)
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return 0
      ;;
    --label | --owner | --token | --busy-exit | --once | --permits | --fence-key)
      return 0
      ;;
  esac

  local words=''
  local waits='--store --password-file --ttl --wait --unreachable --quiet --label --busy-exit'
  case $verb in
    run)
      words="$waits --shared --writer --permits --format --max-hold --at-least --once"
      words+=' --fence-key --keep-password --help --'
      ;;
    lock) words="$waits --json --help" ;;
    renew) words='--store --password-file --owner --token --ttl --help' ;;
    unlock) words='--store --password-file --owner --token --help' ;;
    status) words='--store --password-file --format --json --help' ;;
    break) words='--store --password-file --token --format --help' ;;
    local)
      if ((COMP_CWORD == 2)); then
        words='status stop --help'
      elif [[ ${COMP_WORDS[2]} == status ]]; then
        words='--json --help'
      else
        words='--help'
      fi
      ;;
    redlock)
      if ((COMP_CWORD == 2)); then
        words='status init move --help'
      elif [[ ${COMP_WORDS[2]} == status ]]; then
        words='--store --json --help'
      elif [[ ${COMP_WORDS[2]} == move ]]; then
        words='--store --to --help'
      else
        words='--store --help'
      fi
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  return 0
}

complete -F _holdfast holdfast
