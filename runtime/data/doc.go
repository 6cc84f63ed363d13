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
// Formats (tokens.go): raw text, one token a byte; nanoGPT's headerless .bin of 16-bit tokens; llm.c's
// .bin shards of 16-bit or 32-bit tokens. Text tokenizers other than bytes are not here yet.
//
// Errors that are an InputError are the user's to mend (a path, a file's content, a setting); all others
// are the world's: files that cannot be read.
package data
