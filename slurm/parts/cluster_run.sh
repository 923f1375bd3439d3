
# ---- the driver; its exit code is the job's -----------------------------------------------------------------------
is_alone() { # only the beginning is read: the output of a long run is large
  grep -qm 1 "Started a local Ray instance" <(head -c 2000000 "$LOG_DIR/driver.log" 2>/dev/null)
}
add_sizes "${#ALIVE[@]}"
say "runs: ${CMD[*]}"
node_step "$HEAD" --quiet bash -c "$FUNCTIONS; $(declare -p CMD); run_driver" > >(tee "$LOG_DIR/driver.log") 2>&1 &
DRIVER=$!
while kill -0 "$DRIVER" 2>/dev/null; do
  if find_ended; then
    show_log "$ENDED"
    unset "STEP[$ENDED]"
    ((${#STEP[@]} >= MIN_NODES)) || die 8 "Ray ended on $ENDED while the driver ran"
  fi
  ! is_alone || die 10 "the driver started a Ray of its own instead of using $ADDRESS: remove address=\"local\" or init(num_cpus=...) from it"
  pause 1
done
wait "$DRIVER"
CODE=$?
DRIVER=
! is_alone || die 10 "the driver started a Ray of its own instead of using $ADDRESS"
exit "$CODE"
