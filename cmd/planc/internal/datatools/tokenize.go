package datatools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/tokenfiles"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/tokenizer"
)

// Tokenize converts text to a file of tokens.
type Tokenize struct {
	Out            string // path of the file of tokens
	Tokenizer      string // name or path
	Format         string // "" is the default for the vocabulary
	Key            string // of the text in JSON lines
	EndOfText      string // name or number of the token after each document, or none; "" finds it
	ShardTokens    string // maximum number of tokens of a file; "" is none
	ReplaceInvalid bool   // writes U+FFFD for bytes that are not UTF-8
}

// check checks the flags, and returns the number of tokens of a file, 0 if it is not limited.
func (t *Tokenize) check() (perFile int64, err error) {
	switch {
	case t.Out == "":
		return 0, flagError("", "planc data tokenize needs -o FILE, the file of tokens to write")
	case !strings.EqualFold(filepath.Ext(t.Out), ".bin"):
		return 0, flagError(t.Out+".bin", "-o is %s, but files of tokens must be named .bin", t.Out)
	case t.Tokenizer == "":
		return 0, flagError("", "planc data tokenize needs --tokenizer: bytes, char, gpt2, cl100k, o200k, or "+
			"the path of a tokenizer.json")
	}
	if t.ShardTokens != "" {
		var isShort bool
		perFile, isShort = strict.Count(t.ShardTokens)
		if !isShort {
			perFile, err = strconv.ParseInt(t.ShardTokens, 10, 64)
		}
		if err != nil || perFile <= 0 {
			return 0, flagError("", "--shard-tokens is %s; it must be a number of tokens such as 100M",
				t.ShardTokens)
		}
		if t.Format == "megatron" {
			return 0, flagError("", "--shard-tokens is for the formats nanogpt and llmc")
		}
	}
	if t.Format != "" && !slices.Contains(tokenfiles.Formats, t.Format) {
		return 0, flagError(ir.Nearest(t.Format, tokenfiles.Formats), "unknown format %s; the formats are %s", t.Format,
			strings.Join(tokenfiles.Formats, ", "))
	}
	return perFile, nil
}

// Corpus is what a run of tokenize has done, as --json prints it.
type Corpus struct {
	Files     []string `json:"files"`
	Tokenizer string   `json:"tokenizer"`
	Vocab     int      `json:"vocab"`
	Format    string   `json:"format"`
	Documents int64    `json:"documents"`
	Tokens    int64    `json:"tokens"`
	EndOfText *int32   `json:"end_of_text"`
}

// Run converts files.
func (t *Tokenize) Run(ctx context.Context, ui *console.Console, files []string) (*Corpus, error) {
	perFile, err := t.check()
	if err != nil {
		return nil, err
	}
	if err := checkOutputs("-o", t.outputs(perFile > 0), append(slices.Clone(files), t.Tokenizer)); err != nil {
		return nil, err
	}
	in := input{ui: ui, files: files}
	in.size, err = tokenfiles.Size(files)
	if err != nil {
		return nil, err
	}
	use, err := t.load(ctx, in)
	if err != nil {
		return nil, err
	}
	done := Corpus{Tokenizer: use.name, Vocab: use.Vocab(), Format: t.Format}
	if done.Format == "" {
		done.Format = tokenfiles.DefaultFormat(done.Vocab)
	}
	if done.Format == "nanogpt" && done.Vocab > 1<<16 {
		return nil, flagError("llmc", "the format nanogpt has 16-bit tokens, but %s has a vocabulary of %d",
			use.name, done.Vocab)
	}
	out, err := tokenfiles.Create(done.Format, t.Out, done.Vocab, perFile)
	if err != nil {
		return nil, err
	}
	defer out.Discard()
	if err := t.encode(ctx, in, use, &counting{out, &done}); err != nil {
		return nil, err
	}
	noteDropped(ui, use)
	if done.Tokens == 0 {
		return nil, noText(files)
	}
	if use.endOfText >= 0 {
		done.EndOfText = &use.endOfText
	}
	done.Files, err = out.Finish()
	return &done, err
}

// noteDropped prints a note if characters were left out.
func noteDropped(ui *console.Console, use *namedTokenizer) {
	b, isBPE := use.Tokenizer.(*tokenizer.Subword)
	if !isBPE {
		return
	}
	if c, isDropped := b.Dropped(); isDropped {
		ui.Notef("note: %s has no token for some characters, such as %q; they are left out", use.name, c)
	}
}

// input is what is converted.
type input struct {
	ui    *console.Console
	files []string
	size  int64
}

// noText returns the error for files without text.
func noText(files []string) error {
	return &tokenfiles.InputError{File: files[0], Msg: "there is no text in it"}
}

// counting counts what is written to a sink.
type counting struct {
	to   tokenfiles.Sink
	done *Corpus
}

// Write implements [tokenfiles.Sink].
func (c *counting) Write(tokens []int32, ends []int) error {
	c.done.Tokens += int64(len(tokens))
	c.done.Documents += int64(len(ends))
	return c.to.Write(tokens, ends)
}

// load returns the tokenizer. That of characters is made from the files.
func (t *Tokenize) load(ctx context.Context, in input) (*namedTokenizer, error) {
	if t.Tokenizer == "char" {
		return t.characters(ctx, in)
	}
	use, err := loadTokenizer(ctx, in.ui, t.Tokenizer)
	if err != nil || t.EndOfText == "" && (use.endOfText >= 0 || t.Tokenizer == "bytes") {
		return use, err
	}
	if t.EndOfText == "" {
		return nil, flagError("", "%s has no token with a usual name for the end of text; use --end-of-text "+
			"with its name or number, or --end-of-text none", t.Tokenizer)
	}
	use.endOfText, err = use.tokenNamed(t.EndOfText)
	return use, err
}

// runes is the set of characters of a text.
type runes map[rune]bool

// Write implements [tokenfiles.Sink].
func (r runes) Write(tokens []int32, _ []int) error {
	for _, t := range tokens {
		r[t] = true
	}
	return nil
}

// characters makes the tokenizer of the characters in the files, in the order of their code points, and writes it next
// to the file of tokens.
func (t *Tokenize) characters(ctx context.Context, in input) (*namedTokenizer, error) {
	found := runes{}
	points := &namedTokenizer{tokenizer.CodePoints{}, "char", -1}
	if err := t.encode(ctx, in, points, found); err != nil {
		return nil, err
	}
	var all []rune
	for r := range found {
		all = append(all, r)
	}
	slices.Sort(all)
	text := tokenizer.Characters(all)
	b, err := tokenizer.ParseJSON(text)
	if err != nil {
		return nil, noText(in.files)
	}
	path := t.vocabularyFile()
	return &namedTokenizer{b, path, -1}, build.ReplaceBytes(path, text, 0o666)
}

// outputs returns the files that may be written.
func (t *Tokenize) outputs(isSharded bool) []string {
	files := tokenFiles(t.Out)
	if t.Tokenizer == "char" {
		files = append(files, t.vocabularyFile())
	}
	if isSharded {
		files = append(files, shardFiles(t.Out)...)
	}
	return files
}

// vocabularyFile returns the path of the tokenizer of characters that is written next to the file of tokens.
func (t *Tokenize) vocabularyFile() string {
	return strings.TrimSuffix(t.Out, filepath.Ext(t.Out)) + ".tokenizer.json"
}

// encode converts the files to tokens, and shows its progress.
func (t *Tokenize) encode(ctx context.Context, in input, use *namedTokenizer, to tokenfiles.Sink) error {
	var bytes, tokens atomic.Int64
	e := &tokenfiles.Encoding{Tokenizer: use, EndOfText: use.endOfText, Separator: -1, Key: t.Key,
		ReplacesInvalid: t.ReplaceInvalid, Tokens: &tokens}
	if use.endOfText < 0 && t.EndOfText != "none" {
		line, err := use.Encode(nil, []byte("\n"), true)
		if err == nil && len(line) == 1 {
			e.Separator = line[0]
		}
	}
	began := time.Now()
	end := in.ui.WatchWork(func() string {
		return progressOf(bytes.Load(), in.size, tokens.Load(), time.Since(began))
	})
	err := e.Encode(ctx, &tokenfiles.Reader{Files: in.files, Cut: use.Cut, Key: t.Key, Done: &bytes}, to)
	end()
	if err != nil && ctx.Err() != nil {
		return errStopped
	}
	return err
}

// progressOf formats how far the conversion is: "tokenizing: 1.2 GiB of 4.0 GiB (30 %), 310,000,000 tokens, 12.1 MB/s,
// 250.00 s left".
func progressOf(done, size, tokens int64, took time.Duration) string {
	text := fmt.Sprintf("tokenizing: %s of %s", quantity.Bytes(done), quantity.Bytes(size))
	if size > 0 && done > 0 && took > 0 {
		rate := float64(done) / took.Seconds()
		text += fmt.Sprintf(" (%d %%), %s tokens, %.1f MB/s, %s left", 100*done/size, quantity.Count(tokens), rate/1e6,
			quantity.Seconds(float64(max(0, size-done))/rate))
	}
	return text
}

// Screen formats the result.
func (c *Corpus) Screen() string {
	var b strings.Builder
	row := func(label, format string, args ...any) {
		b.WriteString(layout.Prose(label, 11, fmt.Sprintf(format, args...)))
	}
	documents := "1 document"
	if c.Documents != 1 {
		documents = quantity.Count(c.Documents) + " documents"
	}
	row("tokens", "%s in %s", quantity.Count(c.Tokens), documents)
	row("vocabulary", "%s, tokens 0 to %d", c.Tokenizer, c.Vocab-1)
	for _, f := range c.Files {
		info, err := os.Stat(f)
		if err == nil {
			row("file", "%s, %s, format %s", f, quantity.Bytes(info.Size()), c.Format)
		}
	}
	return b.String()
}
