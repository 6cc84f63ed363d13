// Package tokenfiles turns text into files of tokens, for `planc data`.
//
// [Reader] cuts text files and JSON lines into [Chunk]s of bounded size (read.go). [Encoding] converts chunks to tokens
// on all cores, and gives them to a [Sink] in order (encode.go). A [Sink] writes one of the formats that training
// reads: nanoGPT's and llm.c's (shards.go), and Megatron's (megatron.go). Files appear under their names only when they
// are complete.
package tokenfiles
