
# ---- functions that run on a node, inside its step ----------------------------------------------------------------
export COLLECT_LOGS
STEP_FUNCTIONS=(prepare_step is_ours make_temp_dir end_session remove_temp_dir leave)
# Ray's folder is used and removed only when this job made it: it holds the job's mark, is ours and is no link.
is_ours() {
  local mark=$TEMP_DIR/.made_for_$SLURM_JOB_ID
  [[ -d $TEMP_DIR && ! -L $TEMP_DIR && -O $TEMP_DIR && -f $mark && ! -L $mark && -O $mark ]]
}
make_temp_dir() { # an earlier step of this job may have left it
  local below=${TEMP_DIR%/*}
  below=${below:-/}
  if [[ -n $(find -H "$below" -maxdepth 0 -perm -0002 ! -perm -1000 2>/dev/null) ]]; then
    echo "$NAME: anybody may rename what is in $below: chmod +t it, or choose another TEMP_DIR"
    return 1
  fi
  (umask 077 && mkdir -p -- "$below" && mkdir -- "$TEMP_DIR" && : >"$TEMP_DIR/.made_for_$SLURM_JOB_ID") || is_ours || {
    echo "$NAME: Ray's folder $TEMP_DIR cannot be made, or is not this job's"
    return 1
  }
}
end_session() { # kills what names a session of Ray in this job's folder; not by pkill, which few images have
  local process
  grep -lszF -e "$TEMP_DIR/session_" -e "$TEMP_DIR/ray/session_" /proc/[0-9]*/cmdline | while read -r process; do
    process=${process%/cmdline}
    [[ ! -O $process ]] || kill -KILL "${process#/proc/}" 2>/dev/null
  done
}
remove_temp_dir() { # what dies last may still write: the first try may take the mark and not the folder
  is_ours || return 0
  local tries=20
  until rm -rf --one-file-system -- "$TEMP_DIR" 2>/dev/null || ((tries-- == 0)); do sleep 0.1; done
  [[ ! -e $TEMP_DIR ]] || echo "$NAME: Ray's folder $TEMP_DIR could not be removed"
}
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
  make_temp_dir || exit 2
}
# After scancel no new step can start, so logs are saved and files removed here, within Slurm's KillWait (30 s by default).
leave() {
  trap '' TERM INT
  [[ -z ${CHILD:-} ]] || kill -TERM "$CHILD" 2>/dev/null
  local session
  for session in "$TEMP_DIR"/session_latest "$TEMP_DIR"/ray/session_latest; do
    [[ $COLLECT_LOGS == 0 || ! -d $session/logs ]] || timeout 10 cp -r -- "$session/logs" "$LOG_DIR/ray-$NAME"
  done
  local tries=30
  while [[ -n ${CHILD:-} ]] && kill -0 "$CHILD" 2>/dev/null && ((tries-- > 0)); do sleep 0.1; done
  [[ -z ${CHILD:-} ]] || end_session # ray start waits up to 30 s for its node to drain (Ray 2.60), and Slurm would kill it then
  remove_temp_dir
  exit "$1"
}
