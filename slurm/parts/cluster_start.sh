
# ---- the cluster --------------------------------------------------------------------------------------------------
MIN_NODES=${MIN_NODES:-${#NODES[@]}}
RAY_START_ARGS=()
[[ -z $OBJECT_STORE_MB ]] || RAY_START_ARGS+=(--object-store-memory=$((OBJECT_STORE_MB << 20)))
FUNCTIONS=$(
  declare -p IN CPUS GPUS PORT_BASE HEAD_CIDR HEAD_IFACE RAY_START_ARGS COUNT
  declare -f "${STEP_FUNCTIONS[@]}" to_number is_in own_address address_towards is_open free_base ray_start may_try_again run_head run_worker count_alive run_driver
)
start_node() { # node, what runs there
  node_step "$1" bash -c "$FUNCTIONS; $2" >"$LOG_DIR/start-$1.log" 2>&1 &
  STEP[$1]=$!
}
show_log() { # node
  say "last lines of $LOG_DIR/start-$1.log:"
  tail -n 15 "$LOG_DIR/start-$1.log" | sed "s/^/  $1| /"
}
find_ended() { # sets ENDED to a node whose step has ended
  ENDED=
  local node
  for node in "${!STEP[@]}"; do
    kill -0 "${STEP[$node]}" 2>/dev/null || ENDED=$node
  done
  [[ -n $ENDED ]]
}
say "${#NODES[@]} nodes (${NODES[*]}), $CPUS CPUs and $GPUS GPUs on each; logs: $LOG_DIR"
rm -f "$LOG_DIR"/{head,alive,alive.err,alive.failed,complete}
SECONDS=0
start_node "$HEAD" run_head
until [[ -s $LOG_DIR/head ]]; do
  ! find_ended || { show_log "$HEAD" && die 3 "the head on $HEAD did not start"; }
  ((SECONDS <= READY_TIMEOUT_S)) || { show_log "$HEAD" && die 4 "the head on $HEAD did not answer within $READY_TIMEOUT_S s"; }
  pause 0.2
done
ADDRESS=$(<"$LOG_DIR/head")
[[ $ADDRESS =~ ^[0-9.]+:[0-9]+$ ]] || die 4 "$LOG_DIR/head holds no address: $ADDRESS"
say "the head answers at $ADDRESS after $SECONDS s"
for node in "${NODES[@]:1}"; do start_node "$node" "run_worker $ADDRESS $((READY_TIMEOUT_S - SECONDS))"; done

while :; do
  read -r -a ALIVE <<<"$(tail -n 1 "$LOG_DIR/alive" 2>/dev/null)"
  ((${#ALIVE[@]} < MIN_NODES || ${#ALIVE[@]} < ${#STEP[@]})) || break
  if find_ended; then
    show_log "$ENDED"
    [[ $ENDED != "$HEAD" ]] || die 3 "the head on $HEAD ended"
    unset "STEP[$ENDED]"
    ((${#STEP[@]} >= MIN_NODES)) || die 5 "$ENDED could not start Ray; its own log is above"
  fi
  [[ ! -e $LOG_DIR/alive.failed ]] || { tail -n 5 "$LOG_DIR/alive.err" && die 9 "the nodes could not be counted"; }
  if ((SECONDS > READY_TIMEOUT_S)); then
    ((${#ALIVE[@]} < MIN_NODES)) || break # not all, but as many as must be
    MISSING=()
    for node in "${NODES[@]}"; do
      [[ " ${ALIVE[*]} " == *" ${node%%.*} "* ]] || { MISSING+=("$node") && show_log "$node"; }
    done
    die 6 "${#ALIVE[@]} of $MIN_NODES nodes after $READY_TIMEOUT_S s; missing: ${MISSING[*]}"
  fi
  pause 0.2
done
touch "$LOG_DIR/complete"
say "${#ALIVE[@]} of ${#NODES[@]} nodes are alive after $SECONDS s"
export RAY_ADDRESS=$ADDRESS # a driver without it could start a Ray of its own
