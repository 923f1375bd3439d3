
CMD+=("$@")
((${#CMD[@]})) || die 2 "no command: sbatch $0 python3 examples/math/gsm8k_rl.py --config CONFIG.yaml, or fill in CMD"
CMD+=("scheduler.type=slurm")
