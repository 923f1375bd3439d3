
# ---- the doctor looks at every node before start; its own trouble never fails the job -----------------------------
doctor_step() {
  prepare_step
  find_tool || { echo "rayrl-debug is not installed here" && exit 0; }
  timeout 60 "${TOOL[@]}" doctor --here --preflight -q --no-color -o "$LOG_DIR/doctor" --num-cpus "$CPUS" --num-gpus "$GPUS" \
    --temp-dir "$TEMP_DIR" --log-dir "$LOG_DIR" ${PORT_BASE:+--port-base "$PORT_BASE"} >/dev/null
  remove_temp_dir
  exit 0
}
srun --nodes="${#NODES[@]}" --ntasks="${#NODES[@]}" --ntasks-per-node=1 --cpus-per-task="$CPUS" "${STEP_OPTIONS[@]}" "${GPU_OPTION[@]}" \
  bash -c "$(declare -p IN CPUS GPUS; declare -p PORT_BASE 2>/dev/null; declare -f "${STEP_FUNCTIONS[@]}" find_tool doctor_step); doctor_step" >"$LOG_DIR/doctor.err" 2>&1 &
wait $! || true
DOCTOR=0
EXPECTED=$(IFS=, && echo "${NODES[*]}")
export EXPECTED
side_step "$HEAD" bash -c "$(declare -p IN; declare -f find_tool); find_tool || exit 0
  timeout 60 \"\${TOOL[@]}\" doctor --no-color -q --expect \"\$EXPECTED\" \"\$LOG_DIR/doctor\"" >"$LOG_DIR/doctor.txt" 2>&1 || DOCTOR=$?
((DOCTOR != 1)) || { say "the doctor found trouble:" && cat "$LOG_DIR/doctor.txt"; }
