// Package comm is the communicator of ranks that are goroutines of one process and share its memory.
//
// A Mesh numbers the ranks; a World is one run of all of them, with its failure and its time limit; a
// Group is one rank's end of a collective channel. Collectives publish slices, meet at a barrier, read
// each other's memory, and meet again: no data is queued. Every sum is taken in the order of the group's
// members, so results are the same bits on every rank and in every run. Nothing allocates once joined.
//
// A rank that fails calls World.Fail; every rank that waits, or will wait, then returns an error that
// names what it waited for. A Group serves one stream of a rank; collectives that overlap use a second
// Group of the other stream.
//
// Begin with Mesh.Members and AllReduce. Ranks of several processes are not served here.
package comm
