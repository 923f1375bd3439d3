
# ---- environment of every step ------------------------------------------------------------------------------------
# Workers inherit the raylet's environment, not the driver's: all of this must be set before ray start.
# shellcheck source=/dev/null
[[ -z $SETUP ]] || source "$SETUP" || die 2 "the set-up file $SETUP failed"
export PYTHONFAULTHANDLER=1 PYTHONUNBUFFERED=1 RAY_USAGE_STATS_ENABLED=${RAY_USAGE_STATS_ENABLED:-0}
export RAY_worker_register_timeout_seconds=$REGISTER_TIMEOUT_S
addresses() { for node in "${NODES[@]}"; do getent ahostsv4 "$node" | awk '{print $1; exit}'; done; }
mapfile -t ADDRESSES < <(addresses)
no_proxy=$(printf '%s,' "${NODES[@]}" "${ADDRESSES[@]}")localhost,127.0.0.1${no_proxy:+,$no_proxy}
export no_proxy NO_PROXY=$no_proxy
