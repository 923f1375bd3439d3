
# ---- programs run inside an image; their processes stay visible from outside (no --pid) ---------------------------
APPTAINER=$(command -v apptainer || command -v singularity) || die 2 "neither apptainer nor singularity is on PATH"
MOUNTS=$LOG_DIR,/tmp${BIND:+,$BIND}
case $TEMP_DIR in /tmp/*) ;; /*/*) MOUNTS+=,${TEMP_DIR%/*} ;; *) die 2 "TEMP_DIR=$TEMP_DIR: choose a folder below another one" ;; esac
IN=("$APPTAINER" exec --bind "$MOUNTS" "${CONTAINER_ARGS[@]}" "$IMAGE")
((GPUS == 0)) || IN=("$APPTAINER" exec --nv --bind "$MOUNTS" "${CONTAINER_ARGS[@]}" "$IMAGE")
into_image() { # variables that must reach programs also where --cleanenv is among CONTAINER_ARGS
  local name
  for name in "$@"; do
    [[ -z ${!name:-} ]] || export "APPTAINERENV_$name=${!name}" "SINGULARITYENV_$name=${!name}"
  done
}
into_image RAY_AUTH_MODE RAY_AUTH_TOKEN_PATH RAY_worker_register_timeout_seconds RAY_USAGE_STATS_ENABLED PYTHONFAULTHANDLER no_proxy \
  LOG_DIR TEMP_DIR "${!NCCL_@}" "${!TORCH_@}" "${INTO_IMAGE[@]}"
