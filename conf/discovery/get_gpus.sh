#!/usr/bin/env bash
# The GPUs of this machine as Spark wants to hear of them: {"name": "gpu", "addresses": ["0", "1"]}
set -euo pipefail

addresses=$(nvidia-smi --query-gpu=index --format=csv,noheader | sed 's/.*/"&"/' | paste -sd, -)
printf '{"name": "gpu", "addresses": [%s]}\n' "$addresses"
