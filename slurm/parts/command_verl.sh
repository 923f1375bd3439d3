
CMD+=("$@")
[[ " ${CMD[*]}" != *ray_init.num_[cg]pus=* ]] || die 2 "ray_init.num_cpus and num_gpus must not be set: this job starts Ray itself"
add_sizes() { CMD+=("trainer.nnodes=$1" "trainer.n_gpus_per_node=$GPUS"); } # nodes that are alive
