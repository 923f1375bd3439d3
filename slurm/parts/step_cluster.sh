[[ $PORT_BASE != auto ]] || PORT_BASE=$((20000 + SLURM_JOB_ID % 120 * 100)) # below the ports that the kernel gives out
to_number() { # of an IPv4 address
  local a b c d
  IFS=. read -r a b c d <<<"$1"
  echo $(((a << 24) + (b << 16) + (c << 8) + d))
}
is_in() { # address, network/bits
  local mask=$(((0xffffffff << (32 - ${2#*/})) & 0xffffffff))
  (($(($(to_number "$1") & mask)) == $(($(to_number "${2%/*}") & mask))))
}
own_address() { # an IPv4 address that other nodes can reach: not loopback, link-local or Docker's, unless HEAD_CIDR says so
  local all ip
  if [[ -n $HEAD_IFACE ]]; then
    all=$(ip -4 -o addr show dev "$HEAD_IFACE" | awk '{sub("/.*", "", $4); print $4}')
  else
    all=$(hostname -I)
    all=${all:-$(getent ahostsv4 "$(hostname)" | awk '{print $1}')}
  fi
  for ip in $all; do
    [[ $ip != *:* ]] || continue
    if [[ -n $HEAD_CIDR ]]; then
      is_in "$ip" "$HEAD_CIDR" || continue
    else
      case $ip in 127.* | 169.254.* | 172.17.*) continue ;; esac
    fi
    echo "$ip"
    return 0
  done
  echo "$NAME: no usable IPv4 address among: $all" >&2
  return 1
}
address_towards() { # the address of this node that the head sees
  ip -4 -o route get "$1" 2>/dev/null | awk '{for (i = 1; i < NF; i++) if ($i == "src") {print $(i + 1); exit}}'
}
is_open() { timeout 2 bash -c ": <>/dev/tcp/$1/$2" 2>/dev/null; }
free_base() { # the first block of 100 ports, from $1 on, in which nobody listens
  local base=$1 taken port
  taken=$(awk '$4 == "0A" {sub(".*:", "", $2); print $2}' /proc/net/tcp /proc/net/tcp6 2>/dev/null)
  while ((base < 32000)); do
    for ((port = base; port < base + 9; port++)); do
      ! grep -qx "$(printf '%04X' "$port")" <<<"$taken" || break
    done
    ((port < base + 9)) || { echo "$base" && return 0; }
    echo "$NAME: port $port is taken, trying the next block" >&2
    ((base += 100))
  done
  return 1
}
ray_start() {
  "${IN[@]}" ray start "$@" --num-cpus="$CPUS" --num-gpus="$GPUS" --node-manager-port=$((base + 1)) --object-manager-port=$((base + 2)) \
    --runtime-env-agent-port=$((base + 3)) --dashboard-agent-listen-port=$((base + 5)) --dashboard-agent-grpc-port=$((base + 6)) \
    --metrics-export-port=$((base + 7)) --min-worker-port=0 --max-worker-port=0 "${RAY_START_ARGS[@]}" --disable-usage-stats --block &
  CHILD=$!
}
# Ray gives a node 30 s to come up, which a busy one may need longer for; what a failed start leaves behind would hold ports and folder.
may_try_again() { # exit code, seconds it ran; before the cluster is complete only: a node that had joined must not come back as another one
  (($1 != 0 && --TRIES > 0 && $2 < 120)) && [[ ! -e $LOG_DIR/complete ]] || return 1
  echo "$NAME: ray start ended with $1, trying again"
  is_ours || return 1
  end_session
  rm -rf --one-file-system -- "$TEMP_DIR"/session_*
  sleep 2
}
run_head() {
  prepare_step
  trap 'leave 143' TERM INT
  local base ip began code counter TRIES=3
  ip=$(own_address) || leave 3
  while :; do
    began=$SECONDS
    base=$(free_base "$PORT_BASE") || leave 3
    ray_start --head --node-ip-address="$ip" --port="$base" --temp-dir="$TEMP_DIR" --dashboard-port=$((base + 4)) --ray-client-server-port=$((base + 8))
    while kill -0 "$CHILD" 2>/dev/null && ! is_open "$ip" "$base"; do sleep 0.2; done
    echo "$ip:$base" >"$LOG_DIR/.head.new" && mv "$LOG_DIR/.head.new" "$LOG_DIR/head"
    count_alive "$ip:$base" &
    counter=$!
    wait "$CHILD"
    code=$?
    kill "$counter" 2>/dev/null
    may_try_again "$code" $((SECONDS - began)) || leave "$code"
  done
}
run_worker() { # address of the head, seconds to join
  prepare_step
  trap 'leave 143' TERM INT
  local base ip began code TRIES=3
  base=$(free_base "$PORT_BASE") || leave 3
  until is_open "${1%:*}" "${1##*:}"; do
    if ((SECONDS > $2)); then
      echo "$NAME: no TCP connection to the head at $1 within $2 s; addresses of this node: $(hostname -I)"
      leave 7
    fi
    sleep 1
  done
  ip=$(address_towards "${1%:*}")
  ip=${ip:-$(own_address)} || leave 7
  while :; do
    began=$SECONDS
    ray_start --address="$1" --node-ip-address="$ip"
    wait "$CHILD"
    code=$?
    may_try_again "$code" $((SECONDS - began)) || leave "$code"
  done
}
# Counts alive nodes until the cluster is complete, without becoming a Ray job: ray.init would create one and start workers.
COUNT='
import os, sys, time
from ray._private.state import GlobalState
from ray._raylet import GcsClientOptions
state = GlobalState()
state._initialize_global_state(GcsClientOptions.create(sys.argv[1], None, allow_cluster_id_nil=True, fetch_cluster_id_if_nil=False))
while not os.path.exists(sys.argv[2]):
    alive = sorted({n["NodeManagerHostname"].split(".")[0] for n in state.node_table() if n["Alive"]})
    print(*alive, flush=True)
    time.sleep(1)
'
count_alive() {
  local tries=5
  while ((tries-- > 0)); do
    "${IN[@]}" python3 -c "$COUNT" "$1" "$LOG_DIR/complete" >>"$LOG_DIR/alive" 2>>"$LOG_DIR/alive.err" && return
    sleep 1
  done
  touch "$LOG_DIR/alive.failed"
}
run_driver() {
  [[ -z ${CUDA_VISIBLE_DEVICES:-} ]] || unset ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES
  exec "${IN[@]}" "${CMD[@]}"
}
