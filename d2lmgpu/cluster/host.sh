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
exec "$(command -v sshd)" -D -e -f "$1/$2" >>"$1/$2.log" 2>&1 </dev/null
