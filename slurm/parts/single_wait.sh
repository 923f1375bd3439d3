while kill -0 "$DRIVER" 2>/dev/null; do pause 1; done
wait "$DRIVER"
CODE=$?
DRIVER=
exit "$CODE"
