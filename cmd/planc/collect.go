package main

import "runtime/debug"

// collectAt is by how many per cent planc's memory grows before the next garbage collection: the largest searches take
// 1 to 2 GB, and are a third faster than if more of it is collected while they run.
const collectAt = 400

// uncollected is about how much memory planc takes before garbage is collected for the first time, in bytes. Most
// commands need less. Where a search needs more, early collections find little that is dead.
const uncollected = 512 << 20

// mostGarbage is how much memory planc takes before garbage is collected early again, in bytes: the largest jobs are
// planned in 4 GiB.
const mostGarbage = 3 << 30

// collectLate leaves garbage as long as planc takes little memory, and then as long as it does not grow much. What it
// returns, as long as it is kept, counts as memory that lives, so that memory may grow by as much more; it takes none,
// since nobody writes to it.
func collectLate() (ballast []byte) {
	debug.SetGCPercent(collectAt)
	debug.SetMemoryLimit(mostGarbage)
	return make([]byte, uncollected*100/(100+collectAt))
}
