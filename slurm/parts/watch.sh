
# ---- the companion: takes a snapshot when progress stops; its own trouble never fails the job ---------------------
side_step "$HEAD" bash -c "$(declare -p IN WATCH_ARGS; declare -f find_tool); find_tool || exit 0
  \"\${TOOL[@]}\" watch --address \"\$RAY_ADDRESS\" -o \"\$LOG_DIR/watch\" \"\${WATCH_ARGS[@]}\" || true" >"$LOG_DIR/watch.log" 2>&1 &
SIDE+=($!)
