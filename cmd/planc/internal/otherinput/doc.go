// Package otherinput recognizes input that is meant for other tools, or that is not a job: flags of Megatron, DeepSpeed
// and torchrun ([Flag]), their configurations and scripts ([Check]), and cluster files ([IsClusterFile]). It says what
// to type instead.
package otherinput
