// Package data turns the files that a job names into training samples.
//
// [Open] resolves the paths ([Resolve]), opens each file as a sequence of tokens, and cuts it into samples. The [Set]
// that it returns gives sample g of training and sample g of validation. Both are pure functions of g, so that there is
// no reader state: all ranks share one Set, each reads its own samples, and a checkpoint needs only the number of
// samples read. Nothing depends on the plan: the same number gives the same tokens on any number of ranks.
//
// A file is cut into consecutive windows of SeqLen tokens. The labels are the same tokens shifted by one, so each
// window also needs the token after it. The last window of a file may be shorter and is a sample too. Each token of a
// file except the first is thus a label exactly once per epoch. Epochs are permuted by a keyed bijection of the sample
// numbers (order.go) and not by a shuffled list.
//
// Formats (format.go): raw text with one token per byte; nanoGPT's headerless .bin with 16-bit tokens; llm.c's .bin
// shards with 16-bit or 32-bit tokens; Megatron's .bin with an .idx file (megatron.go). Files of other kinds are
// detected by their first bytes (magic.go) or by the pattern of their zero bytes (zeropattern.go), and refused, because
// training on raw bytes would succeed on any of them. Only regular files are opened (open.go).
//
// Files are read with pread into buffers of bounded size (tokens.go) and never mapped, so that an I/O error is an error
// value and a hanging disk blocks only the goroutine that reads. Changes of a file in use are detected (watch.go).
//
// An [InputError] is the user's to fix (a path, a file's content, a setting). A [ChangedError] reports a file that has
// changed since it was opened. All other errors are failures of the environment: a [ReadError] if a file cannot be
// read.
package data
