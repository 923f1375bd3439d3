say "for each role in the configuration: additional_bash_cmds: [\"source $LOG_DIR/role.sh\"]"

# ---- the controller -----------------------------------------------------------------------------------------------
run_controller() {
  [[ -z ${CUDA_VISIBLE_DEVICES:-} ]] || unset ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES
  ulimit -Sn "$(ulimit -Hn)"
  exec "${IN[@]}" "${CMD[@]}"
}
unset SLURM_CPU_BIND SLURM_MEM_PER_CPU SLURM_MEM_PER_NODE SLURM_MEM_PER_GPU # or the jobs that AReaL submits would inherit them
say "runs: ${CMD[*]}"
node_step "$HEAD" bash -c "$(
  declare -p IN CMD
  declare -f run_controller
); run_controller" > >(tee "$LOG_DIR/driver.log") 2>&1 &
DRIVER=$!
