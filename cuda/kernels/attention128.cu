// Attention on tensor cores of heads of 128, and its gradient.
#include "attention_kernels.cuh"

ATTENTION_KERNELS(128, 1, 32)
