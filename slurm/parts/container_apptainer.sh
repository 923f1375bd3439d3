
# ---- programs run inside an image; their processes stay visible from outside (no --pid) ---------------------------
APPTAINER=$(command -v apptainer || command -v singularity) || die 2 "neither apptainer nor singularity is on PATH"
IN=("$APPTAINER" exec --nv --bind "$LOG_DIR,/tmp${BIND:+,$BIND}" "${CONTAINER_ARGS[@]}" "$IMAGE")
((GPUS)) || IN=("$APPTAINER" exec --bind "$LOG_DIR,/tmp${BIND:+,$BIND}" "${CONTAINER_ARGS[@]}" "$IMAGE")
for name in RAY_AUTH_MODE RAY_AUTH_TOKEN_PATH RAY_worker_register_timeout_seconds no_proxy; do
  [[ -z ${!name:-} ]] || export "APPTAINERENV_$name=${!name}" "SINGULARITYENV_$name=${!name}"
done
