cat >>"$LOG_DIR/role.sh" <<ROLE
# The companion of this node's ranks, once per node; its own trouble never fails the role.
if [ "\${SLURM_LOCALID:-0}" = 0 ] && command -v rayrl-debug >/dev/null; then
  (rayrl-debug watch --here -o "$LOG_DIR/watch/\${SLURM_JOB_ID:-0}-\$(hostname)" ${WATCH_ARGS[*]} >/dev/null 2>&1 || true) &
fi
ROLE
