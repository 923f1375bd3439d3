
# ---- evidence of a hang: NCCL's warnings and torch's Flight Recorder ----------------------------------------------
export NCCL_DEBUG=${NCCL_DEBUG:-WARN} NCCL_DEBUG_FILE="$LOG_DIR/nccl.%h.%p.log"
# 2,000 collectives of 200 tensors each are 10 MB; ten times that would be too much to read from a rank that hangs.
export TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1
export TORCH_FR_DUMP_TEMP_FILE="$LOG_DIR/nccl_trace_rank_" TORCH_NCCL_DEBUG_INFO_TEMP_FILE="$LOG_DIR/nccl_trace_rank_"
