package datatools

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/tokenfiles"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/data"
)

// Split cuts a file of tokens in two.
type Split struct {
	Valid                string // fraction to hold out
	EndOfText            string // number of the token that ends a document; "" cuts anywhere
	TrainFile, ValidFile string // "" names them after the file

	fraction  float64
	endOfText int32
}

// check checks the flags.
func (s *Split) check(file string) (err error) {
	s.endOfText = -1
	s.fraction, err = strconv.ParseFloat(s.Valid, 64)
	if err != nil || !(s.fraction > 0 && s.fraction < 1) {
		return flagError("", "planc data split needs --valid with a fraction between 0 and 1, such as 0.01")
	}
	if s.EndOfText != "" {
		id, err := strconv.ParseInt(s.EndOfText, 10, 32)
		if err != nil || id < 0 {
			return flagError("", "--end-of-text is %s; it must be the number of a token", s.EndOfText)
		}
		s.endOfText = int32(id)
	}
	ext := filepath.Ext(file)
	for _, f := range []struct {
		name *string
		part string
	}{{&s.TrainFile, "train"}, {&s.ValidFile, "valid"}} {
		if *f.name == "" {
			*f.name = strings.TrimSuffix(file, ext) + "." + f.part + ext
		}
		flag := "--" + f.part + "-file"
		if err := checkOutputs(flag, tokenFiles(*f.name), tokenFiles(file)); err != nil {
			return err
		}
		if !strings.EqualFold(filepath.Ext(*f.name), ".bin") {
			return flagError("", "%s is %s; files of tokens must be named .bin", flag, *f.name)
		}
	}
	if filepath.Clean(s.TrainFile) == filepath.Clean(s.ValidFile) {
		return flagError("", "--train-file and --valid-file must be two files")
	}
	return nil
}

// Parts is what split has done, as --json prints it.
type Parts struct {
	Train Part `json:"train"`
	Valid Part `json:"valid"`
}

// Part is one part of a file.
type Part struct {
	Files  []string `json:"files"`
	Tokens int64    `json:"tokens"`
}

// Run cuts a file.
func (s *Split) Run(ctx context.Context, ui *console.Console, file string) (*Parts, error) {
	if err := s.check(file); err != nil {
		return nil, err
	}
	f, err := data.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Format().Name == "text" {
		return nil, &tokenfiles.InputError{File: file, Msg: "this is text, not a file of tokens; use planc data " +
			"tokenize first"}
	}
	var done Parts
	end := ui.WatchWork(func() string { return "splitting ..." })
	err = s.write(ctx, f, &done)
	end()
	return &done, err
}

// Screen formats the result.
func (p *Parts) Screen() string {
	return p.Train.screen("train") + p.Valid.screen("valid")
}

func (p *Part) screen(label string) string {
	return layout.Prose(label, 6, fmt.Sprintf("%s, %s tokens", strings.Join(p.Files, ", "), quantity.Count(p.Tokens)))
}

// errStopped reports that the user has stopped planc.
var errStopped = errors.New("stopped")

// findCut returns the number of tokens of the first part: at least what the fraction leaves, up to the end of a
// document if these are known.
func (s *Split) findCut(f *data.File) (int64, error) {
	format := f.Format()
	least := format.Tokens - int64(float64(format.Tokens)*s.fraction+0.5)
	end := int64(0)
	for length, err := range f.Sequences() {
		end += length
		if err != nil || end >= least {
			return end, err
		}
	}
	if s.endOfText < 0 {
		return least, nil
	}
	found, seen := format.Tokens, int64(0)
	err := f.Scan(func(tokens []int32) error {
		for i, t := range tokens {
			if at := seen + int64(i) + 1; at >= least && t == s.endOfText {
				found = at
				return errFound
			}
		}
		seen += int64(len(tokens))
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}

// errFound ends a scan.
var errFound = errors.New("found")

// write writes both parts.
func (s *Split) write(ctx context.Context, f *data.File, done *Parts) error {
	format := f.Format()
	cut, err := s.findCut(f)
	if err != nil {
		return err
	}
	if cut <= 0 || cut >= format.Tokens {
		return flagError("", "one of the parts would be empty: the file has %d tokens, and the cut would be after %d",
			format.Tokens, cut)
	}
	train, err := createLike(format, s.TrainFile)
	if err != nil {
		return err
	}
	defer train.Discard()
	valid, err := createLike(format, s.ValidFile)
	if err != nil {
		return err
	}
	defer valid.Discard()
	if err := copyParts(ctx, f, cut, train, valid); err != nil {
		return err
	}
	done.Train.Tokens, done.Valid.Tokens = cut, format.Tokens-cut
	done.Train.Files, err = train.Finish()
	if err != nil {
		return err
	}
	done.Valid.Files, err = valid.Finish()
	return err
}

// copyParts copies the tokens up to cut to one sink, and the others to another.
func copyParts(ctx context.Context, f *data.File, cut int64, first, second tokenfiles.Sink) error {
	next, stop := iter.Pull2(f.Sequences())
	defer stop()
	length, indexErr, isMore := next()
	seen, end := int64(0), length // end is that of the current sequence
	return f.Scan(func(tokens []int32) error {
		if ctx.Err() != nil {
			return errStopped
		}
		n := int(max(0, min(cut-seen, int64(len(tokens)))))
		var ends [2][]int // in each part
		for isMore && end <= seen+int64(len(tokens)) {
			if at := int(end - seen); at <= n {
				ends[0] = append(ends[0], at)
			} else {
				ends[1] = append(ends[1], at-n)
			}
			length, indexErr, isMore = next()
			end += length
		}
		seen += int64(len(tokens))
		return errors.Join(indexErr, first.Write(tokens[:n], ends[0]), second.Write(tokens[n:], ends[1]))
	})
}

// createLike begins to write a file in the format of another one.
func createLike(format data.Format, path string) (tokenfiles.Output, error) {
	name, vocab := "nanogpt", 1<<15 // every format has tokens of 16 bits for it
	if format.Width == 4 {
		vocab = 1<<16 + 1
	}
	switch {
	case format.Name == "Megatron tokens":
		name = "megatron"
	case format.Offset > 0:
		name = "llmc"
	}
	return tokenfiles.Create(name, path, vocab, 0)
}
