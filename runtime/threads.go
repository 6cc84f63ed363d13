package runtime

// threadsEach is how many threads a rank has of the process's processors: together the ranks never have more than
// those, unless there are fewer than ranks. --threads N asks for N a rank, by setting how many processors the process
// uses.
func threadsEach(processors, ranks int) int { return max(1, processors/ranks) }
