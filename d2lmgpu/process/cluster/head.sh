# The controller of the box's Slurm, in namespaces of its own but for the network.
# Argument: the cluster's folder.
set -e
hostname head
mount --bind "$1/hosts" /etc/hosts
exec >>"$1/head.log" 2>&1 </dev/null
munged --force --key-file="$1/munge.key" --socket="$1/munge.socket" --pid-file="$1/munged.pid" \
    --log-file="$1/munged.log" --seed-file="$1/munged.seed"
exec slurmctld -D -c -f "$1/slurm.conf"
