package cpu

import "github.com/planc-dev/planc/runtime/cpu/team"

// Threads sets the number of teams and the number of threads of each. There is one team for each rank that
// calls kernels. No kernel may run meanwhile.
func Threads(ranks, each int) { team.Threads(ranks, each) }

// Overlap makes a helper of a rank's team call f when it has no part of a kernel's work. See [team.Overlap].
func Overlap(rank int, f *func()) { team.Overlap(rank, f) }
