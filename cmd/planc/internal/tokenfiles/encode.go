package tokenfiles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/planc-dev/planc/runtime/tokenizer"
)

// Sink takes the tokens of a corpus in order.
type Sink interface {
	// Write appends tokens. ends are the positions in them at which documents end.
	Write(tokens []int32, ends []int) error
}

// Encoding is how text becomes tokens.
type Encoding struct {
	Tokenizer tokenizer.Tokenizer
	EndOfText int32  // token after each document; -1 if there is none
	Separator int32  // token after each document of JSON lines if EndOfText is -1; may be -1 too
	Key       string // of the text in JSON lines

	// ReplacesInvalid replaces bytes that are not UTF-8 by U+FFFD. Otherwise they are an error, unless tokens are
	// bytes.
	ReplacesInvalid bool

	Tokens *atomic.Int64 // tokens so far; may be nil
}

// encoded are the tokens of a chunk.
type encoded struct {
	tokens []int32
	ends   []int
	err    error
}

// Encode converts all text of a reader on all cores, and writes the tokens to a sink. At most a few chunks per core are
// in memory.
func (e *Encoding) Encode(ctx context.Context, r *Reader, to Sink) error {
	workers := runtime.GOMAXPROCS(0)
	type job struct {
		chunk Chunk
		out   chan encoded
	}
	jobs, order := make(chan job), make(chan job, 2*workers)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var readErr error
	var all sync.WaitGroup
	all.Go(func() {
		defer close(order)
		defer close(jobs)
		readErr = r.Read(func(c Chunk) error {
			j := job{c, make(chan encoded, 1)}
			for _, to := range []chan job{order, jobs} {
				select {
				case to <- j:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	})
	for range workers {
		all.Go(func() {
			for j := range jobs {
				j.out <- e.chunk(&j.chunk) // never blocks
			}
		})
	}
	var err error
	for j := range order {
		if err != nil {
			continue // the reader stops soon
		}
		select {
		case done := <-j.out:
			err = e.write(done, to)
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			stop()
		}
	}
	all.Wait()
	if err == nil {
		err = readErr
	}
	return err
}

func (e *Encoding) write(done encoded, to Sink) error {
	if done.err != nil {
		return done.err
	}
	if e.Tokens != nil {
		e.Tokens.Add(int64(len(done.tokens)))
	}
	return to.Write(done.tokens, done.ends)
}

// chunk returns the tokens of a chunk.
func (e *Encoding) chunk(c *Chunk) (out encoded) {
	if c.IsJSON {
		return e.lines(c)
	}
	text, err := e.valid(c)
	if err != nil {
		return encoded{err: err}
	}
	out.tokens = make([]int32, 0, len(text)/3+2)
	out.tokens, err = e.Tokenizer.Encode(out.tokens, text, c.IsStart)
	if err != nil {
		return encoded{err: c.inputError(0, err.Error())}
	}
	switch {
	case c.Row > 0:
		out.end(e.afterLine())
	case c.IsEnd && !(c.IsStart && len(text) == 0):
		out.end(e.EndOfText)
	}
	return out
}

// end ends a document.
func (out *encoded) end(token int32) {
	if token >= 0 {
		out.tokens = append(out.tokens, token)
	}
	out.ends = append(out.ends, len(out.tokens))
}

// valid returns the text of a chunk, which is UTF-8 unless tokens are bytes.
func (e *Encoding) valid(c *Chunk) ([]byte, error) {
	text := c.Text
	if _, isBytes := e.Tokenizer.(tokenizer.Bytes); isBytes || utf8.Valid(text) {
		return text, nil
	}
	if e.ReplacesInvalid {
		return bytes.ToValidUTF8(text, []byte("\uFFFD")), nil
	}
	at := 0
	for {
		r, n := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return nil, c.inputError(at, fmt.Sprintf("the byte 0x%02X is not UTF-8; convert the file, or use "+
		"--replace-invalid, which writes U+FFFD instead", text[at]))
}

// inputError returns the error for the byte of a chunk at a position.
func (c *Chunk) inputError(at int, msg string) error {
	if c.Row > 0 {
		return &InputError{File: c.File, Msg: fmt.Sprintf("row %d: %s", c.Row, msg)}
	}
	before := c.Text[:at]
	return &InputError{File: c.File, Line: c.Line + bytes.Count(before, []byte("\n")),
		Column: at - bytes.LastIndexByte(before, '\n'), Msg: msg}
}

// lines returns the tokens of JSON lines. Empty lines and empty documents have none.
func (e *Encoding) lines(c *Chunk) (out encoded) {
	out.tokens = make([]int32, 0, len(c.Text)/4)
	line := c.Line - 1
	for text := range bytes.Lines(c.Text) {
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		at := Chunk{File: c.File, Line: line}
		at.Text = text
		text, err := e.valid(&at)
		if err != nil {
			return encoded{err: err}
		}
		document, err := e.document(&at, text)
		if err != nil {
			return encoded{err: err}
		}
		if document == "" {
			continue
		}
		out.tokens, err = e.Tokenizer.Encode(out.tokens, []byte(document), true)
		if err != nil {
			return encoded{err: &InputError{File: c.File, Line: line, Column: 1, Msg: err.Error()}}
		}
		out.end(e.afterLine())
	}
	return out
}

// afterLine returns the token after a document of JSON lines.
func (e *Encoding) afterLine() int32 {
	if e.EndOfText >= 0 {
		return e.EndOfText
	}
	return e.Separator
}

// document returns the text in a line of JSON.
func (e *Encoding) document(at *Chunk, line []byte) (string, error) {
	var object map[string]json.RawMessage
	bad := func(column int64, format string, args ...any) error {
		return &InputError{File: at.File, Line: at.Line, Column: int(column), Msg: fmt.Sprintf(format, args...)}
	}
	if err := json.Unmarshal(line, &object); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return "", bad(max(1, syntax.Offset), "the line is not JSON: %v", err)
		}
		return "", bad(1, "the line is not a JSON object")
	}
	value, ok := object[e.Key]
	if !ok {
		var keys []string
		for k := range object {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		return "", bad(1, "the object has no key %q; its keys are %s: choose one with --key", e.Key,
			strings.Join(keys, ", "))
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil || value[0] != '"' {
		return "", bad(1+int64(bytes.Index(line, value)), "the value of %q must be text", e.Key)
	}
	return text, nil
}
