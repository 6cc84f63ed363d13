// Package launch finds which of a program's ranks a process must run. A process that was started alone runs all of
// them. Otherwise its flags decide, or the environment variables of torchrun, srun, mpirun or Kubernetes.
//
// If a launch has as many processes as the program has ranks, each process runs one. If it has one process per node,
// each runs the ranks of its node. Contradictions are refused, with the names of flags and variables.
//
// Start reading at [Resolve]. The package opens no connection; package meet does.
package launch
