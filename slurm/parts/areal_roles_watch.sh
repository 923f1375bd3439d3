cat >>"$LOG_DIR/role.sh" <<ROLE
# Look into all roles at once:  touch $LOG_DIR/look  and later: rayrl-debug report $LOG_DIR/look-*/snapshot.json.gz
if [ "\${SLURM_LOCALID:-0}" = 0 ] && command -v rayrl-debug >/dev/null; then
  (while sleep 5; do
    if [ "$LOG_DIR/look" -nt "$LOG_DIR/.looked-\$SLURM_JOB_ID-\$(hostname)" ]; then
      touch "$LOG_DIR/.looked-\$SLURM_JOB_ID-\$(hostname)"
      rayrl-debug snapshot --pid \$\$ -q -o "$LOG_DIR/look-\$SLURM_JOB_ID-\$(hostname)" >/dev/null 2>&1
    fi
  done) &
fi
ROLE
