package datatools

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/data"
	"github.com/planc-dev/planc/runtime/tokenizer"
)

// Inspect looks into files of tokens.
type Inspect struct {
	Tokenizer  string // name or path; "" shows no text
	Model, Job string // a model, or a job with one, whose vocabulary the tokens must fit; "" or one of them
}

// Inspected is what a file has, as --json prints it.
type Inspected struct {
	File    string  `json:"file"`
	Format  string  `json:"format"`
	Bits    int     `json:"bits"`
	Tokens  int64   `json:"tokens"`
	Largest int32   `json:"largest"`
	First   []int32 `json:"first"`
	Text    *string `json:"text"` // of the first tokens; nil without --tokenizer
	Vocab   *int    `json:"vocab"`
	Fits    *bool   `json:"fits"`
	model   string
}

// firstTokens is the number of tokens that are shown.
const firstTokens = 40

// Findings is what inspected files have.
type Findings struct {
	Files []Inspected `json:"files"`
	model string
	vocab int
}

// Run inspects files.
func (i *Inspect) Run(ctx context.Context, ui *console.Console, files []string) (*Findings, error) {
	vocab, model, err := i.vocabulary(ui)
	if err != nil {
		return nil, err
	}
	var use *namedTokenizer
	if i.Tokenizer != "" {
		use, err = loadTokenizer(ctx, ui, i.Tokenizer)
		if err != nil {
			return nil, err
		}
	}
	all := &Findings{model: model, vocab: vocab}
	for _, path := range files {
		found := Inspected{File: path, model: model}
		err := ui.RunWithNotice("reading "+path, func() error { return found.read(path) })
		if err != nil {
			return nil, err
		}
		if use != nil {
			text := tokenizer.Decode(use.Tokenizer, found.First)
			found.Text = &text
		}
		if model != "" {
			fits := int(found.Largest) < vocab
			found.Vocab, found.Fits = &vocab, &fits
		}
		all.Files = append(all.Files, found)
	}
	return all, nil
}

// Misfit returns why the tokens do not fit the model, or "".
func (f *Findings) Misfit() string {
	for _, file := range f.Files {
		if file.Fits != nil && !*file.Fits {
			return fmt.Sprintf("there are tokens that the vocabulary of %s does not have (0 to %d): use a model with "+
				"a larger vocabulary, or another tokenizer", f.model, f.vocab-1)
		}
	}
	return ""
}

// vocabulary returns the vocabulary of the model that the flags name, and the model's name, or "" if they name none.
func (i *Inspect) vocabulary(ui *console.Console) (vocab int, model string, err error) {
	switch {
	case i.Model != "" && i.Job != "":
		return 0, "", flagError("", "planc data inspect takes either --model or --job, not both")
	case i.Model != "":
		c, err := spec.LoadModel(i.Model, ui.Read)
		if err != nil {
			return 0, "", err
		}
		return c.Vocab, c.Name, nil
	case i.Job == "":
		return 0, "", nil
	}
	j, err := spec.Load(i.Job, ui.Read)
	if err != nil {
		return 0, "", err
	}
	return j.Config.Vocab, j.Config.Name, nil
}

// read reads all tokens of a file.
func (i *Inspected) read(path string) error {
	f, err := data.OpenFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	format := f.Format()
	i.Format, i.Bits, i.Tokens = format.Name, 8*format.Width, format.Tokens
	return f.Scan(func(tokens []int32) error {
		if len(i.First) == 0 {
			i.First = append(i.First, tokens[:min(len(tokens), firstTokens)]...)
		}
		largest := uint32(i.Largest)
		for _, t := range tokens {
			largest = max(largest, uint32(t))
		}
		i.Largest = int32(largest)
		return nil
	})
}

// Screen formats the result.
func (f *Findings) Screen() string {
	var parts []string
	for _, file := range f.Files {
		parts = append(parts, file.screen())
	}
	return strings.Join(parts, "\n")
}

// screen formats what a file has.
func (i *Inspected) screen() string {
	var b strings.Builder
	row := func(label, format string, args ...any) {
		b.WriteString(layout.Prose(label, 10, fmt.Sprintf(format, args...)))
	}
	size := ""
	if info, err := os.Stat(i.File); err == nil {
		size = ", " + quantity.Bytes(info.Size())
	}
	row("file", "%s%s", i.File, size)
	row("format", "%s, %d bits each", i.Format, i.Bits)
	row("tokens", "%s", quantity.Count(i.Tokens))
	row("largest", "%d", uint32(i.Largest))
	if i.Fits != nil {
		verdict := "too small"
		if *i.Fits {
			verdict = "fits"
		}
		row("vocab", "%s has %s tokens: %s", i.model, quantity.Count(*i.Vocab), verdict)
	}
	var numbers []string
	for _, t := range i.First {
		numbers = append(numbers, fmt.Sprint(t))
	}
	row("first", "%s", strings.Join(numbers, " "))
	if i.Text != nil {
		fmt.Fprintf(&b, "%-9s %q\n", "text", *i.Text)
	}
	return b.String()
}
