#!/bin/bash
# dp 16 · micro_batch 1×1 on 2 nodes of 8 × H100-SXM-80GB
# planc compile JOB --target cuda -o train writes the program ./train
# Start this script on each of the 2 nodes, with MASTER_ADDR set to the name of one of them.
: "${MASTER_ADDR:?must be the name of one of the nodes}"
exec torchrun --rdzv-endpoint="$MASTER_ADDR:29400" --rdzv-id=Llama-3.1-8B --rdzv-backend=c10d --nnodes=2 --nproc-per-node=8 --no-python ./train
