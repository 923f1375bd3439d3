
# ---- every step runs inside an image (Pyxis); the image is unpacked once per node and kept by its name ------------
IN=()
STEP_OPTIONS+=(--container-image="$IMAGE" --container-name="rr$SLURM_JOB_ID" --container-mounts="$LOG_DIR:$LOG_DIR,/tmp:/tmp${BIND:+,$BIND}")
STEP_OPTIONS+=(--no-container-mount-home "${CONTAINER_ARGS[@]}")
