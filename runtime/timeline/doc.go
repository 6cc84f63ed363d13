// Package timeline measures where the time of a training step goes, and writes traces.
//
// A [Track] belongs to one goroutine of a rank. It always adds up the seconds of each [Part] of a step. This costs a
// reading of the clock when the part changes, and allocates nothing. While it records, it also stores a [Span] for each
// piece of work. [Write] writes the spans of all tracks in Chrome's trace event format, which Perfetto reads.
//
// The package knows nothing of ranks and collectives. Start reading at Track.
package timeline
