// Package machine describes the machine that planc runs on, measures it and checks what works on it.
//
// [Inspect] reads what the system says about the CPU and the memory; [InspectGPUs] asks nvidia-smi. [MeasureCPU] times
// the runtime's kernels on a core. [MeasuringProgram] returns the sources of the program that times GPUs, and
// [GPUFactors] compares its measurement with the cost model. Cluster files are written from these:
// [CPUClusterText], [GPUClusterText]. [Examine] runs the checks of planc doctor.
package machine
