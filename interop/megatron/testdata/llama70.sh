#!/bin/bash
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=8
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-8}
TP=4
PP=4
MBS=1
GBS=$((MBS * 128))
CHECKPOINT=$1

DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE \
    --nnodes $NNODES \
    --master_addr $MASTER_ADDR
"
MODEL_ARGS=(
    --num-layers 80
    --hidden-size 8192
    --ffn-hidden-size 28672
    --num-attention-heads 64
    --group-query-attention
    --num-query-groups 8
    --swiglu
    --normalization RMSNorm
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --position-embedding-type rope
    --seq-length 8192
    --max-position-embeddings 8192
)
TRAIN_ARGS=(
    --micro-batch-size $MBS
    --global-batch-size ${GBS}
    --bf16 # mixed precision
    --lr 1.5e-4
    --train-iters 1000
    --tokenizer-type HuggingFaceTokenizer
    --tokenizer-model meta-llama/Llama-3-70B
    --attention-dropout 0 --hidden-dropout 0
)
PAR_ARGS=(
    --tensor-model-parallel-size ${TP}
    --pipeline-model-parallel-size ${PP}
    --sequence-parallel
    --use-distributed-optimizer
    --overlap-grad-reduce --overlap-param-gather
)
if [ -n "$RECOMPUTE" ]; then
  PAR_ARGS+=(--recompute-granularity full --recompute-method uniform --recompute-num-layers 1)
fi
torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    "${MODEL_ARGS[@]}" \
    ${TRAIN_ARGS[@]} \
    ${PAR_ARGS[@]} \
    --data-path $DATA --save $CHECKPOINT \
    --log-interval 1 "$@"
