
# ---- every way out leads through here -----------------------------------------------------------------------------
declare -A STEP=() # node name to the pid of its srun
DRIVER='' SIDE=()
finish() {
  local code=$? pid end
  trap '' TERM INT USR1
  trap - EXIT
  # TERM to the srun client would kill its tasks at once; through Slurm they may save logs and clean up.
  scancel --signal=TERM "$SLURM_JOB_ID" 2>/dev/null
  ((end = SECONDS + 25))
  for pid in "${STEP[@]}" $DRIVER "${SIDE[@]}"; do
    while kill -0 "$pid" 2>/dev/null && ((SECONDS < end)); do sleep 0.1; done
    kill -KILL "$pid" 2>/dev/null
  done
  rm -f "$LOG_DIR/.ray_token"
  say "ends with $code; logs: $LOG_DIR"
  exit "$code"
}
trap finish EXIT
trap 'say "cancelled"; exit 143' TERM INT
pause() { sleep "$1" & wait $!; } # so that a signal is handled at once
