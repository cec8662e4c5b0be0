#!/usr/bin/env bash
# Makes .venv with the pinned PyTorch for CPUs, as the README says: `make` then finds it there.
set -euo pipefail
cd "$(dirname "$0")/.."
INDEX=${TORCH_INDEX:-https://download.pytorch.org/whl/cpu}
python3.11 -m venv .venv
grep -E '^(torch|torchvision)==' requirements.txt | .venv/bin/python -m pip install -q -r /dev/stdin --index-url "$INDEX"
