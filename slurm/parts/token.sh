
# One token for all steps of this job: the head would turn authentication on where it finds a token, other nodes would not.
unset RAY_AUTH_TOKEN
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$LOG_DIR/.ray_token"
(umask 077 && rm -f -- "$RAY_AUTH_TOKEN_PATH" && set -o noclobber && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$RAY_AUTH_TOKEN_PATH") || die 2 "cannot write the token below $LOG_DIR"
