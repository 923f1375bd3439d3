
find_tool() { # sets TOOL to the rayrl-debug of the image, or else to the one outside
  TOOL=("${IN[@]}" rayrl-debug)
  ! "${IN[@]}" bash -c "command -v rayrl-debug" >/dev/null 2>&1 || return 0
  TOOL=(rayrl-debug)
  command -v rayrl-debug >/dev/null
}
