
set -uo pipefail
say() { printf '[%(%H:%M:%S)T] %s\n' -1 "$*"; }
die() {
  local code=$1
  shift
  say "ERROR $*"
  exit "$code"
}
