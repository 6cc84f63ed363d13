package driver

// threadsEach returns the number of threads of each rank. Together the ranks use at most the process's processors,
// unless there are fewer processors than ranks. --threads N sets the number of processors so that each rank gets N.
func threadsEach(processors, ranks int) int { return max(1, processors/ranks) }
