# A command of Slurm on this machine, under the controller's name: what it listens on, it takes from
# that, and so it is the bridge. Arguments: the cluster's folder, the command and its arguments.
set -e
hostname head
mount --bind "$1/hosts" /etc/hosts
export SLURM_CONF="$1/slurm.conf"
shift
exec "$@"
