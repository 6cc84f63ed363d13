package process

import "runtime/debug"

// gcPercent is the growth of the heap, in per cent, that triggers a garbage collection. The largest searches take 1 to
// 2 GB, and are a third faster with fewer collections.
const gcPercent = 400

// gcStart is the approximate heap size in bytes at which the first garbage collection starts. Most commands need less.
// In searches that need more, early collections would free little.
const gcStart = 512 << 20

// gcMemoryLimit is the memory in bytes above which garbage is collected more often. The largest jobs are planned in
// 4 GiB.
const gcMemoryLimit = 3 << 30

// DelayGC makes garbage collections rare. It returns a ballast that the caller must keep alive: it counts as live
// memory and so raises the heap size of the first collection, but uses no physical memory because nobody writes to it.
func DelayGC() (ballast []byte) {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(gcMemoryLimit)
	return make([]byte, gcStart*100/(100+gcPercent))
}
