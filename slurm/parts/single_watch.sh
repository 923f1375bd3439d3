# the companion; its own trouble never fails the job
side_step "$HEAD" bash -c "$(declare -p IN WATCH_ARGS; declare -f find_tool); find_tool || exit 0
  while \"\${TOOL[@]}\" watch -o \"\$LOG_DIR/watch\" \"\${WATCH_ARGS[@]}\"; ((\$? == 3)); do sleep 5; done # until Ray is there
  true" >"$LOG_DIR/watch.log" 2>&1 &
SIDE+=($!)
