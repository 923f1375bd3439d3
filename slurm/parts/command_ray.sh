
(($# == 0)) || CMD=("$@")
((${#CMD[@]})) || die 2 "no command: sbatch $0 python train.py, or fill in CMD"
add_sizes() { :; } # the program asks Ray what there is
