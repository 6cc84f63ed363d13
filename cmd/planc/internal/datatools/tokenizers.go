package datatools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/text/unicode/norm"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/tokenfiles"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/data"
	"github.com/planc-dev/planc/runtime/tokenizer"
)

// TokenizerNames returns the names of tokenizers that are not files.
func TokenizerNames() []string {
	names := []string{"bytes"}
	for _, e := range tokenizer.Encodings {
		names = append(names, e.Name)
	}
	return names
}

// namedTokenizer is a tokenizer and its token that ends a document.
type namedTokenizer struct {
	tokenizer.Tokenizer
	name      string // as the user gave it
	endOfText int32  // -1 if there is none, or if it is unknown
}

// loadTokenizer returns the tokenizer of a name, or of a tokenizer.json.
func loadTokenizer(ctx context.Context, ui *console.Console, name string) (*namedTokenizer, error) {
	if name == "bytes" {
		return &namedTokenizer{tokenizer.Bytes{}, name, -1}, nil
	}
	tokenizer.NFC, tokenizer.NFD = norm.NFC.Bytes, norm.NFD.Bytes
	text, err := readTokenizer(ctx, ui, name, name)
	if err != nil {
		return nil, err
	}
	if e, ok := tokenizer.FindEncoding(name); ok {
		t, err := tokenizer.ParseRanks(e, text)
		return &namedTokenizer{t, name, e.EndOfText}, err
	}
	t, err := parseFile(name, text)
	if err != nil {
		return nil, err
	}
	return &namedTokenizer{t, name, findEndOfText(t, name)}, nil
}

// parseFile returns the tokenizer of a tokenizer.json.
func parseFile(path string, text []byte) (tokenizer.Tokenizer, error) {
	t, err := tokenizer.ParseJSON(text)
	if err != nil {
		return nil, &tokenfiles.InputError{File: path, Msg: "this tokenizer cannot be used: " + err.Error()}
	}
	return t, nil
}

// readTokenizer returns the rank table of an encoding, or the tokenizer.json at a path.
func readTokenizer(ctx context.Context, ui *console.Console, name, path string) (text []byte, err error) {
	if e, ok := tokenizer.FindEncoding(name); ok {
		err = ui.RunWithNotice("building the table of "+name+", once", func() (err error) {
			text, err = build.RankTable(ctx, e.Published)
			return err
		})
		return text, err
	}
	text, err = os.ReadFile(path)
	switch {
	case err != nil && filepath.Ext(name) == "" && os.IsNotExist(err):
		return nil, flagError(ir.Nearest(name, append(TokenizerNames(), "char")),
			"unknown tokenizer %s; use bytes, char, gpt2, cl100k, o200k, or the path of a tokenizer.json", name)
	case err != nil:
		return nil, &tokenfiles.InputError{File: path, Msg: "cannot be read: " + ir.FileReason(err)}
	}
	return text, nil
}

// Embedded returns the Go declarations that embed the tokenizer of a job, and the tokenizer's vocabulary. They use the
// runtime as package rt. A path is relative to root, and root to dir.
func Embedded(ctx context.Context, ui *console.Console, name, root, dir string) (src []byte, vocab int, err error) {
	path := name
	if _, isNamed := tokenizer.FindEncoding(name); !isNamed {
		paths, err := data.Resolve(name, root, dir)
		if err != nil {
			return nil, 0, err
		}
		path = paths[0]
	}
	text, err := readTokenizer(ctx, ui, name, path)
	if err != nil {
		return nil, 0, err
	}
	var t tokenizer.Tokenizer
	if e, ok := tokenizer.FindEncoding(name); ok {
		t, err = tokenizer.ParseRanks(e, text)
	} else {
		t, err = parseFile(path, text)
	}
	if err != nil {
		return nil, 0, err
	}
	return fmt.Appendf(nil, embeddedSource, name, data.Pack(text)), t.Vocab(), nil
}

// embeddedSource is the source of [Embedded], with the name of the tokenizer and its packed text.
const embeddedSource = `
// The tokenizer of data.tokenizer, compressed.
func init() {
	rt.EmbedTokenizer(%q, %q)
}
`

// ends are names of tokens that end a document, in the files of models.
var ends = []string{"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<｜end▁of▁sentence｜>", "[EOS]"}

// findEndOfText returns the token that ends documents: the eos_token of the tokenizer_config.json in the same folder,
// or one with a usual name. It returns -1 if there is none.
func findEndOfText(t tokenizer.Tokenizer, path string) int32 {
	var config struct {
		EOS json.RawMessage `json:"eos_token"`
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "tokenizer_config.json"))
	if err == nil && json.Unmarshal(text, &config) == nil {
		var name string
		var token struct {
			Content string `json:"content"`
		}
		if json.Unmarshal(config.EOS, &name) != nil && json.Unmarshal(config.EOS, &token) == nil {
			name = token.Content
		}
		if id, ok := t.Special(name); ok {
			return id
		}
	}
	for _, name := range ends {
		if id, ok := t.Special(name); ok {
			return id
		}
	}
	return -1
}

// tokenNamed returns the ID of --end-of-text: a number, the name of a special token, or none (-1).
func (t *namedTokenizer) tokenNamed(word string) (int32, error) {
	if word == "none" {
		return -1, nil
	}
	if id, ok := t.Special(word); ok {
		return id, nil
	}
	id, err := strconv.Atoi(word)
	if err != nil || id < 0 || id >= t.Vocab() {
		return 0, flagError("", "--end-of-text is %s, but %s has no such special token; use its name, its "+
			"number (0 to %d), or none", word, t.name, t.Vocab()-1)
	}
	return int32(id), nil
}
