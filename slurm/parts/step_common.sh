
# ---- functions that run on a node, inside its step ----------------------------------------------------------------
export COLLECT_LOGS
prepare_step() {
  # Slurm sets these in every step; frameworks refuse to run when they disagree.
  [[ -z ${CUDA_VISIBLE_DEVICES:-} ]] || unset ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES
  ulimit -Sn "$(ulimit -Hn)"
  ulimit -Su "$(ulimit -Hu)"
  NAME=${SLURMD_NODENAME:-$(hostname -s)}
  local allowed
  allowed=$(nproc)
  ((CPUS <= allowed)) || echo "$NAME: this step may use $allowed of $CPUS CPUs, so Ray gets $allowed"
  CPUS=$((CPUS < allowed ? CPUS : allowed))
  (umask 077 && mkdir -p "$TEMP_DIR")
}
# After scancel no new step can start, so logs are saved and files removed here, within Slurm's KillWait.
leave() {
  trap '' TERM INT
  [[ -z ${CHILD:-} ]] || kill -TERM "$CHILD" 2>/dev/null
  local session
  for session in "$TEMP_DIR"/session_latest "$TEMP_DIR"/ray/session_latest; do
    [[ $COLLECT_LOGS == 0 || ! -d $session/logs ]] || timeout 10 cp -r "$session/logs" "$LOG_DIR/ray-$NAME"
  done
  local tries=30
  while [[ -n ${CHILD:-} ]] && kill -0 "$CHILD" 2>/dev/null && ((tries-- > 0)); do sleep 0.1; done
  rm -rf "$TEMP_DIR"
  exit "$1"
}
