
# ---- the companion: takes a snapshot when progress stops; its own trouble never fails the job ---------------------
side_step "$HEAD" bash -c "$(declare -p IN WATCH_ARGS); command -v rayrl-debug >/dev/null || exit 0
  \"\${IN[@]}\" rayrl-debug watch --address $ADDRESS -o $LOG_DIR/watch \"\${WATCH_ARGS[@]}\" || true" >"$LOG_DIR/watch.log" 2>&1 &
SIDE+=($!)
