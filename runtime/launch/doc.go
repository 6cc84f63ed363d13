// Package launch finds which part of a program's ranks a process is to run: all of them where it was started alone,
// else what its flags, or the environment's variables of torchrun, srun, mpirun or Kubernetes, say.
//
// A launch of as many processes as the program has ranks gives each process one; a launch of one process a node gives
// each the ranks of its node. Whatever contradicts itself or the program is refused, by the names of flags and
// variables.
//
// Begin with [Resolve]. The package opens no connection: that is package meet's.
package launch
