
CMD+=("$@")
[[ " ${CMD[*]}" != *ray_init.num_cpus=* ]] || die 2 "ray_init.num_cpus must not be set: this job starts Ray itself and gives it the CPUs"
CMD+=("trainer.nnodes=${#NODES[@]}" "trainer.n_gpus_per_node=$GPUS")
