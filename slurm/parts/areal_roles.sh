
# ---- what AReaL's own Slurm jobs run before each role -------------------------------------------------------------
# AReaL submits one job per role and needs no Ray. Those jobs inherit this environment; the lines below go into the configuration, for
# each role:   scheduling_spec: [{additional_bash_cmds: [source LOG_DIR/role.sh]}]
cat >"$LOG_DIR/role.sh" <<ROLE
$(export -p | grep -E ' (NCCL_|TORCH_|PYTHONFAULTHANDLER|PYTHONUNBUFFERED)')
unset ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES
ulimit -Sn "\$(ulimit -Hn)"
ROLE
