
# ---- one node: the program starts Ray itself ----------------------------------------------------------------------
(($(bytes "$TEMP_DIR") <= 40)) || die 2 "Ray's folder $TEMP_DIR has $(bytes "$TEMP_DIR") bytes: with /ray behind it its sockets allow 40"
run_single() {
  prepare_step
  trap 'leave 143' TERM INT
  export RAY_TMPDIR="$TEMP_DIR" # Ray's sessions go to $RAY_TMPDIR/ray
  # Here the program must tell Ray its size: Ray itself would take the machine's cores, not the ones that Slurm allows.
  "${IN[@]}" "${CMD[@]}" "ray_kwargs.ray_init.num_cpus=$CPUS" "+ray_kwargs.ray_init.num_gpus=$GPUS" \
    "trainer.nnodes=1" "trainer.n_gpus_per_node=$GPUS" &
  CHILD=$!
  wait "$CHILD"
  leave $?
}
unset RAY_ADDRESS
say "$HEAD, $CPUS CPUs and $GPUS GPUs; logs: $LOG_DIR"
say "runs: ${CMD[*]}"
node_step "$HEAD" bash -c "$(
  declare -p IN CPUS GPUS CMD
  declare -f "${STEP_FUNCTIONS[@]}" run_single
); run_single" > >(tee "$LOG_DIR/driver.log") 2>&1 &
DRIVER=$!
