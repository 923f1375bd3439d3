
CMD+=("$@")
((${#CMD[@]})) || die 2 "no command: sbatch $0 python3 examples/math/gsm8k_rl.py --config CONFIG.yaml, or fill in CMD"
add_sizes() { CMD+=("scheduler.type=ray" "cluster.n_nodes=$1" "cluster.n_gpus_per_node=$GPUS"); } # nodes that are alive
