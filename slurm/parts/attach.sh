
set -uo pipefail
JOB=${1:-$JOB}
[[ $JOB =~ ^[0-9]+ ]] || { echo "usage: bash $0 JOBID [options of rayrl-debug snapshot]" >&2; exit 2; }
shift
STATE=$(squeue --noheader --jobs="$JOB" --format=%T) || exit 2
[[ $STATE == RUNNING ]] || { echo "job $JOB is ${STATE:-not there}, not RUNNING" >&2; exit 2; }
NODES=$(squeue --noheader --jobs="$JOB" --format=%D)
OUTPUT=${OUTPUT:-hang-$JOB}
mkdir -p -- "$OUTPUT"

look() { # 0 and 1 are answers: nothing found, findings; every node is looked at alone and judged with the others later
  local into="$OUTPUT/$SLURMD_NODENAME" code pids
  timeout "$TIMEOUT_S" rayrl-debug snapshot --here -q --no-color -o "$into" "$@" >/dev/null 2>"$into.err"
  code=$?
  if [[ ! -s $into/snapshot.json.gz ]]; then # no raylet here: then all that the job runs on this node
    mapfile -t pids < <(scontrol listpids "$JOB" | awk -v step="$SLURM_STEP_ID" 'NR > 1 && $1 > 1 && $3 != step && $3 != "extern" {print "--pid=" $1}')
    timeout "$TIMEOUT_S" rayrl-debug snapshot "${pids[@]}" -q --no-color -o "$into" "$@" >/dev/null 2>>"$into.err"
    code=$?
  fi
  [[ -s $into/snapshot.json.gz ]] || { echo "$SLURMD_NODENAME: no snapshot, exit code $code" && cat "$into.err"; } >&2
}
# A step of its own on every node of the job, beside what runs there: no CPU, memory or GPU is taken from it.
# Ray is not asked anything, so this works when Ray does not answer. One silent node does not stop the others.
srun --jobid="$JOB" --overlap --mem=0 --cpu-bind=none --cpus-per-task=1 --nodes="$NODES" --ntasks="$NODES" --ntasks-per-node=1 \
  --kill-on-bad-exit=0 bash -c "$(declare -p OUTPUT TIMEOUT_S JOB; declare -f look); look \"\$@\"" look "$@" ||
  echo "some nodes gave no snapshot; the others follow" >&2

exec rayrl-debug report --no-color -o "$OUTPUT" "$OUTPUT"/*/snapshot.json.gz
