{
  echo "# Look into all roles at once:  touch $(printf %q "$LOG_DIR/look")  and later: rayrl-debug report $(printf %q "$LOG_DIR")/look-*/snapshot.json.gz"
  echo "rayrl_debug_dir=$(printf %q "$LOG_DIR")"
  cat <<'ROLE'
if [ "${SLURM_LOCALID:-0}" = 0 ] && command -v rayrl-debug >/dev/null; then
  (while sleep 5; do
    if [ "$rayrl_debug_dir/look" -nt "$rayrl_debug_dir/.looked-$SLURM_JOB_ID-$(hostname)" ]; then
      touch "$rayrl_debug_dir/.looked-$SLURM_JOB_ID-$(hostname)"
      rayrl-debug snapshot --pid $$ -q -o "$rayrl_debug_dir/look-$SLURM_JOB_ID-$(hostname)" >/dev/null 2>&1
    fi
  done) &
fi
ROLE
} >>"$LOG_DIR/role.sh"
