package tokenizer

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
)

// Encoding is one of OpenAI's encodings.
type Encoding struct {
	Name      string // in a job
	Published string // OpenAI's name
	EndOfText int32  // ID of <|endoftext|>
	SHA256    string // of the rank table, as tiktoken/openai_public.py of tiktoken 0.14.0 has it
	pattern   string
}

// Regular expressions of OpenAI's encodings, from tiktoken/openai_public.py and, for cl100k, its equivalent without
// possessive quantifiers in earlier versions.
const (
	gpt2Pattern   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	cl100kPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|` +
		`\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kPattern = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` +
		`(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` +
		`(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// Encodings are the encodings whose names a job may give. Their rank tables are not part of this package.
var Encodings = []Encoding{
	{"gpt2", "r50k_base", 50256, "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930", gpt2Pattern},
	{"cl100k", "cl100k_base", 100257, "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
		cl100kPattern},
	{"o200k", "o200k_base", 199999, "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", o200kPattern},
}

// FindEncoding returns the encoding of a name.
func FindEncoding(name string) (Encoding, bool) {
	for _, e := range Encodings {
		if e.Name == name {
			return e, true
		}
	}
	return Encoding{}, false
}

// endOfText is the special token that ends a document.
const endOfText = "<|endoftext|>"

// ParseRanks returns the tokenizer of an encoding. table is its rank table in OpenAI's format: a line per token, with
// its bytes in base64 and its rank, which is its ID.
func ParseRanks(e Encoding, table []byte) (*Subword, error) {
	if sum := sha256.Sum256(table); hex.EncodeToString(sum[:]) != e.SHA256 {
		return nil, fmt.Errorf("the rank table of %s has the SHA-256 %x; it must be %s", e.Published, sum, e.SHA256)
	}
	b := &Subword{whole: map[string]int32{}, special: map[string]int32{endOfText: e.EndOfText}}
	for line := range bytes.Lines(table) {
		word, rank, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		text, err := base64.StdEncoding.AppendDecode(nil, word)
		id, badRank := strconv.Atoi(string(rank))
		if err != nil || badRank != nil || id < len(b.texts) {
			return nil, fmt.Errorf("the rank table of %s has the line %q", e.Published, line)
		}
		b.setText(int32(id), text)
		b.whole[string(text)] = int32(id)
	}
	b.setText(e.EndOfText, []byte(endOfText))
	var err error
	b.bytes, err = bytesOf(b.whole, func(c byte) string { return string([]byte{c}) })
	if err != nil {
		return nil, err
	}
	b.mergeByText()
	p, err := compilePattern(e.pattern)
	if err != nil {
		return nil, err
	}
	b.split = []splitter{p.splitter(isolated)}
	b.canBeCut = p.cuts && p.matchesEach()
	return b, nil
}

// setText sets the text of a token.
func (b *Subword) setText(id int32, text []byte) {
	if n := int(id) + 1 - len(b.texts); n > 0 {
		b.texts = append(b.texts, make([][]byte, n)...)
	}
	b.texts[id] = text
}

// mergeByText makes each pair of tokens a merge if together they are a token. Its rank is that token's ID.
func (b *Subword) mergeByText() {
	b.merges = make(map[uint64]merged, 2*len(b.whole))
	for text, id := range b.whole {
		for i := 1; i < len(text); i++ {
			left, ok := b.whole[text[:i]]
			if !ok {
				continue
			}
			if right, ok := b.whole[text[i:]]; ok {
				b.merges[pairKey(left, right)] = merged{id, id}
			}
		}
	}
}
