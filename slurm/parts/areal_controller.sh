say "for each role in the configuration: additional_bash_cmds: [source $(printf %q "$LOG_DIR/role.sh")]"

# ---- the controller -----------------------------------------------------------------------------------------------
run_controller() {
  [[ -z ${CUDA_VISIBLE_DEVICES:-} ]] || unset ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES
  ulimit -Sn "$(ulimit -Hn)"
  # The jobs that AReaL submits inherit this step's environment: its CPU mask, memory and size are not theirs.
  unset "${!SLURM_CPU_BIND@}" "${!SLURM_MEM_PER_@}" "${!SLURM_NTASKS@}" "${!SLURM_TASKS_PER_@}" SLURM_NPROCS SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK
  exec "${IN[@]}" "${CMD[@]}"
}
say "runs: ${CMD[*]}"
node_step "$HEAD" bash -c "$(
  declare -p IN CMD
  declare -f run_controller
); run_controller" > >(tee "$LOG_DIR/driver.log") 2>&1 &
DRIVER=$!
