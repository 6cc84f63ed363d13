#!/bin/bash
# dp 16 · micro_batch 1×1 on 2 nodes of 8 × H100-SXM-80GB
# planc compile JOB --target cuda -o train writes the program ./train
# HOSTFILE lists 2 nodes, one a line: NAME slots=8
HOSTFILE=${HOSTFILE:-hostfile}
export MASTER_ADDR=$(awk 'NF && $1 !~ /^#/ { print $1; exit }' "$HOSTFILE") MASTER_PORT=29500
exec mpirun -np 16 --hostfile "$HOSTFILE" --map-by ppr:8:node --bind-to none -x MASTER_ADDR -x MASTER_PORT \
	./train
