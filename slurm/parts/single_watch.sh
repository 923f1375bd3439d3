# the companion; its own trouble never fails the job
side_step "$HEAD" bash -c "$(declare -p IN WATCH_ARGS); command -v rayrl-debug >/dev/null || exit 0
  while \"\${IN[@]}\" rayrl-debug watch -o $LOG_DIR/watch \"\${WATCH_ARGS[@]}\"; ((\$? == 3)); do sleep 5; done # until Ray is there
  true" >"$LOG_DIR/watch.log" 2>&1 &
SIDE+=($!)
