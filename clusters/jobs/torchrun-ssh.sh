#!/bin/bash
# The course's script on hosts that ssh reaches without a password: one torchrun on each. From the
# course's folder, which every host must see at the same path:
#
#     clusters/jobs/torchrun-ssh.sh "host1 host2" 2 --epochs 5 --checkpoints lenet
#
# 2 is the number of processes on each host; what follows goes to the script. They meet at the first
# host. SSH="ssh -F file" is another way to reach them, PORT another meeting point.

set -euo pipefail
read -ra hosts <<<"$1"
number=$2
shift 2

options=
[ $# = 0 ] || printf -v options '%q ' "$@"
torchrun="cd $(printf %q "$PWD") && exec env OMP_NUM_THREADS=1 TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 \
    ${PYTHON:-.venv/bin/python} -m torch.distributed.run \
    --nnodes=${#hosts[@]} --nproc-per-node=$number \
    --rdzv-backend=c10d --rdzv-endpoint=${hosts[0]}:${PORT:-29500} --rdzv-id=$$ \
    chapters/concise/train_ddp_overnight.py $options"

# -tt gives each a terminal: with the connection it goes, and torchrun ends. So nothing stays on a
# host if this script is interrupted, or if another host fails.
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
for host in "${hosts[@]}"; do
    ${SSH:-ssh} -tt "$host" "$torchrun" </dev/null &
done
for _ in "${hosts[@]}"; do
    wait -n
done
