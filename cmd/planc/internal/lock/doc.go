// Package lock is the lock file: the plan of a job, what it was decided from, and what was generated for it.
//
// [File] is the whole content. [File.Bytes] prints it, the same bytes for the same content on any machine; [Parse]
// reads it back as strictly as a job file is read, since people edit locks and merge them. [Changes] says which of the
// job's deciding fields are not as they were. The package touches no files; cmd/planc reads and writes them.
package lock
