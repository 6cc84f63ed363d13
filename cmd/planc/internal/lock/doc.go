// Package lock reads and writes lock files. A lock holds the plan of a job, the inputs from which it was decided, and
// the hashes of generated files.
//
// [File] is the content of a lock. [File.Bytes] prints it; the same content gives the same bytes on every machine.
// [Parse] reads it as strictly as a job file, because people edit and merge locks. [Changes] returns the deciding
// fields that differ between two jobs. [Job] is the lock of one job with these differences. The package does no I/O;
// cmd/planc reads and writes the files.
package lock
