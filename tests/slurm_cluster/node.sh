#!/bin/bash
# pid 1 of one test node: own mounts and cgroups, then slurmd. When it is killed, everything in its PID namespace ends with it.
# Arguments: state folder, node name, then folders that every user must be able to reach (Python, our sources).
set -e
state=$1 name=$2
shift 2
hostname "$name"
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o size=3g,mode=1777 shm /dev/shm

# /tmp and root's home are the node's own, and open; folders below them that are needed are put back.
number=0
for folder in "$@"; do
  mkdir -p "$state/held.$name/$((number += 1))"
  mount --bind "$folder" "$state/held.$name/$number"
done
mkdir -p "$state/tmp.$name"
mount --bind "$state/tmp.$name" /tmp
chmod 1777 /tmp
mount -t tmpfs -o mode=755,size=64m home /root
number=0
for folder in "$@"; do
  number=$((number + 1))
  if [ ! -d "$folder" ]; then
    (umask 022 && mkdir -p "$folder")
    mount --bind "$state/held.$name/$number" "$folder"
  fi
done
mount --bind "$state/hosts" /etc/hosts

if [ -d /sys/fs/cgroup/cpuset ]; then
  # Mounted again inside a cgroup namespace, the root of each hierarchy is this node's own group.
  for controller in cpuset cpu cpuacct memory freezer devices; do
    if [ -d "/sys/fs/cgroup/$controller" ]; then
      umount "/sys/fs/cgroup/$controller"
      mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller"
    fi
  done
fi
slurmd -D -f "$state/slurm.conf" -N "$name" &
wait $! || true
while :; do sleep 3600 & wait $!; done
