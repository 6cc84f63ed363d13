// Package data turns the files that a job names into training samples.
//
// Open resolves the paths (Resolve), opens each file as a run of tokens and cuts it into samples; the Set
// it returns answers two questions: what is sample g of training, and what is sample g of validation.
// Both are pure functions of g, so there is no reader state: ranks share one Set, each reads the numbers
// that are its own, and a checkpoint needs only the count of samples consumed. Nothing depends on the
// plan: the same numbers give the same tokens on any count of ranks.
//
// A file is cut into consecutive windows of SeqLen tokens, each with the token after it for the labels,
// which are the tokens shifted by one. The last window of a file may be shorter; it is a sample too. So
// each token of a file but its first is a label exactly once an epoch. Epochs are permuted by a keyed
// bijection of the sample numbers (order.go) rather than a shuffled list.
//
// Formats (format.go): raw text, one token a byte; nanoGPT's headerless .bin of 16-bit tokens; llm.c's
// .bin shards of 16-bit or 32-bit tokens. Text tokenizers other than bytes are not here yet. Files of
// other kinds are refused, by their first bytes (magic.go) or by where their zero bytes lie (rhythm.go),
// because as raw bytes all of them would train. Only regular files are opened (open.go).
//
// Files are read with pread into buffers of bounded size (tokens.go), never mapped, so that an I/O error
// is an error and a disk that hangs holds up only the goroutine that reads. A file that changes while it
// is in use is noticed (watch.go).
//
// An InputError is the user's to mend (a path, a file's content, a setting), a ChangedError is of a file
// that is no longer what it was when it was opened; all others are the environment's: a ReadError if a
// file cannot be read.
package data
