// Package tokenizer converts text to tokens and back.
//
// [Bytes] has one token per byte. [Subword] is byte-pair encoding or WordPiece: of OpenAI's rank tables ([ParseRanks],
// for the encodings in [Encodings]), or of a Hugging Face tokenizer.json ([ParseJSON]). Both give the token IDs of
// tiktoken's encode_ordinary and of the Hugging Face tokenizers library without special tokens added. [Characters] is
// the vocabulary of the characters of a text, written as a tokenizer.json.
//
// Text is split by the tokenizer's regular expressions (pattern.go), of which Go's regexp has no lookahead. Each piece
// is merged (bpe.go), or split into the longest tokens (wordpiece.go; bert.go has BERT's normalizer). Letters, digits
// and spaces are those of the Unicode version of Go's unicode package. A long text can be encoded in parts, at
// positions that [Tokenizer.Cut] finds (cut.go).
//
// Unigram models, and other normalizers that change letters, are refused by name. The package does no I/O.
package tokenizer
