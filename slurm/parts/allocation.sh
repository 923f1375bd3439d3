
# ---- what Slurm gave ----------------------------------------------------------------------------------------------
[[ -n ${SLURM_JOB_ID:-} ]] || { echo "submit this file: sbatch $0 COMMAND" >&2; exit 2; }
mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
HEAD=${NODES[0]}

smallest() { tr ',' '\n' <<<"$1" | sed 's/(.*//' | sort -n | head -n 1; } # 64(x3),32 gives 32
CPUS=${CPUS_PER_NODE:-${SLURM_CPUS_PER_TASK:-$(smallest "${SLURM_JOB_CPUS_PER_NODE:-}")}}
[[ $CPUS =~ ^[1-9][0-9]*$ ]] || die 2 "the CPUs per node are not known: set CPUS_PER_NODE, or sbatch --cpus-per-task=N"

GPUS=${GPUS_PER_NODE:-${SLURM_GPUS_PER_NODE:-${SLURM_GPUS_ON_NODE:-}}}
[[ -n $GPUS || -z ${SLURM_JOB_GPUS:-} ]] || GPUS=$(tr ',' '\n' <<<"$SLURM_JOB_GPUS" | grep -c .)
GPUS=${GPUS##*:} # h100:8 gives 8
[[ $GPUS =~ ^[0-9]+$ ]] || die 2 "the GPUs per node are not known: sbatch --gpus-per-node=N, or set GPUS_PER_NODE=0 for a job without GPUs"

# Steps do not inherit --cpus-per-task since Slurm 22.05, share CPUs but not memory with --overlap, and sites often bind to one core.
STEP_OPTIONS=(--overlap --mem=0 --cpu-bind=none --kill-on-bad-exit=0 --export=ALL)
export SRUN_CPUS_PER_TASK=$CPUS
GPU_OPTION=()
((GPUS == 0)) || GPU_OPTION=(--gres="gpu:$GPUS")
node_step() { srun --nodes=1 --ntasks=1 --nodelist="$1" --cpus-per-task="$CPUS" "${STEP_OPTIONS[@]}" "${GPU_OPTION[@]}" "${@:2}"; }
side_step() { srun --nodes=1 --ntasks=1 --nodelist="$1" --cpus-per-task=1 "${STEP_OPTIONS[@]}" "${@:2}"; }

LOG_DIR=$LOG_ROOT/$SLURM_JOB_ID${SLURM_RESTART_COUNT:+-restart$SLURM_RESTART_COUNT}
mkdir -p -- "$LOG_DIR" || die 2 "cannot write $LOG_DIR"
# Never the folder that was given: what is in it is not ours to remove.
TEMP_DIR=${TEMP_DIR:-/tmp}
TEMP_DIR=${TEMP_DIR%/}/rr$SLURM_JOB_ID${SLURM_RESTART_COUNT:+-$SLURM_RESTART_COUNT}
[[ $TEMP_DIR == /* ]] || die 2 "TEMP_DIR=$TEMP_DIR is not absolute"
bytes() { printf %s "$1" | wc -c; }
(($(bytes "$TEMP_DIR") <= 44)) || die 2 "Ray's folder $TEMP_DIR has $(bytes "$TEMP_DIR") bytes: its sockets allow 44"
export LOG_DIR TEMP_DIR
