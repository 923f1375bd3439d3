before_time_limit() {
  local count=${SLURM_RESTART_COUNT:-0}
  if ((count >= REQUEUE_LIMIT)); then
    say "the time limit is near; this job was requeued $count times already and goes on until it is cut off"
    return
  fi
  say "the time limit is near: requeue $((count + 1)) of $REQUEUE_LIMIT"
  trap - EXIT
  (finish)
  scontrol requeue "$SLURM_JOB_ID"
  while sleep 1; do :; done # Slurm ends this script
}
trap before_time_limit USR1
