
((${#NODES[@]} == 1)) || die 2 "this template is for one node; use verl.sbatch for ${#NODES[@]}"
CMD+=("$@")
