// Package comm implements collectives between ranks that are goroutines of one process and share its memory.
//
// A [Mesh] numbers the ranks. A [World] is one run of all ranks, with its failure and its timeout. A [Group] is one
// rank's end of a collective channel. Collectives publish slices, wait at a barrier, read each other's memory, and wait
// again: no data is queued. Every sum is computed in the order of the group's members, so that results are
// bit-identical on every rank and in every run. Collectives do not allocate memory after joining.
//
// A rank that fails calls World.Fail. Every rank that waits, now or later, then returns an error that names what it
// waited for. A Group serves one stream of a rank; concurrent collectives use a second Group on the other stream.
//
// Start reading at Mesh.Members and AllReduce. Not supported yet: ranks in several processes.
package comm
