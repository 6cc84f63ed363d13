package main

import "runtime/debug"

// gcPercent is by how many per cent planc's memory grows before the next garbage collection: the largest searches take
// 1 to 2 GB, and are a third faster than if more of it is collected while they run.
const gcPercent = 400

// gcStart is about how much memory planc takes before garbage is collected for the first time, in bytes. Most
// commands need less. Where a search needs more, early collections find little that is dead.
const gcStart = 512 << 20

// gcMemoryLimit is how much memory planc takes before garbage is collected early again, in bytes: the largest jobs are
// planned in 4 GiB.
const gcMemoryLimit = 3 << 30

// delayGC leaves garbage as long as planc takes little memory, and then as long as it does not grow much. What it
// returns, as long as it is kept, counts as memory that lives, so that memory may grow by as much more; it takes none,
// since nobody writes to it.
func delayGC() (ballast []byte) {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(gcMemoryLimit)
	return make([]byte, gcStart*100/(100+gcPercent))
}
