# The first process of a host, in namespaces of its own. Arguments: the cluster's folder, the name.
set -e
hostname "$2"
# An own /run: sshd wants a folder there, and what the host's workers leave goes with it.
mount --bind "$1" /mnt
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd "$1"
mount --move /mnt "$1"
mount --bind "$1/hosts" /etc/hosts
mount --bind "$1/shadow" /etc/shadow
ip link set lo up
echo ready
read -r go  # the end of the pipe instead: `cluster up` was killed
if [ -e "$1/slurm.conf" ]; then
    mknod /run/gpu0 c 1 3  # slurmd counts devices, and uses none
    mknod /run/gpu1 c 1 3
    printf '#!/bin/sh\necho export TMPDIR=/run\n' >/run/task-prolog
    chmod 755 /run/task-prolog
    slurmd -f "$1/slurm.conf" >>"$1/$2.log" 2>&1 </dev/null
fi
exec "$(command -v sshd)" -D -e -f "$1/$2" >>"$1/$2.log" 2>&1 </dev/null
