package tokenfiles

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// Sizes of what is read at once. A part of a text that cannot be cut, and a line of JSON, may be as long as maxChunk.
const (
	chunkBytes = 1 << 20
	maxChunk   = 256 << 20
)

// InputError is an input error in a file. Line and Column count from 1; they are 0 if the error concerns the file.
type InputError struct {
	File         string
	Line, Column int
	Msg          string
}

func (e *InputError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Msg)
}

// Chunk is a part of a file: a part of one document, complete lines of JSON with one document each, or a row of a
// table.
type Chunk struct {
	File           string
	Line           int   // line of the first byte
	Row            int64 // of a table, from 1; 0 if the file is none
	Text           []byte
	IsJSON         bool
	IsStart, IsEnd bool // of a document, unless IsJSON
}

// Reader cuts files into chunks.
type Reader struct {
	Files []string
	Cut   func(text []byte) int // [tokenizer.Tokenizer.Cut]
	Key   string                // of the texts in tables
	Done  *atomic.Int64         // bytes read so far, of files as they are stored; may be nil
	limit int                   // bytes of a chunk; 0 means maxChunk
}

// Size returns the sizes of the files together.
func Size(files []string) (total int64, err error) {
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return 0, fileError(path, err)
		}
		if info.IsDir() {
			return 0, &InputError{File: path, Msg: "is a folder; name its files"}
		}
		total += info.Size()
	}
	return total, nil
}

// fileError returns the input error for a file that does not exist, or else err.
func fileError(path string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return &InputError{File: path, Msg: "there is no such file"}
	}
	return err
}

// Read calls each for the chunks of all files, in order, until it returns an error.
func (r *Reader) Read(each func(Chunk) error) error {
	for _, path := range r.Files {
		read := r.readFile
		if isParquet(path) {
			read = r.readParquet
		}
		if err := read(path, each); err != nil {
			return err
		}
	}
	return nil
}

// counter counts what is read from a file.
type counter struct {
	io.Reader
	n *atomic.Int64
}

func (c counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if c.n != nil {
		c.n.Add(int64(n))
	}
	return n, err
}

func (r *Reader) readFile(path string, each func(Chunk) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fileError(path, err)
	}
	defer f.Close()
	var in io.Reader = counter{f, r.Done}
	name := path
	if strings.EqualFold(filepath.Ext(name), ".gz") {
		unpacked, err := gzip.NewReader(bufio.NewReaderSize(in, chunkBytes))
		if err != nil {
			return &InputError{File: path, Msg: "is named as compressed by gzip, but is not: " + err.Error()}
		}
		in, name = unpacked, strings.TrimSuffix(name, filepath.Ext(name))
	}
	c := cutter{in: in, next: Chunk{File: path, Line: 1, IsStart: true, IsJSON: isJSONLines(name)}, cut: r.Cut,
		limit: cmp.Or(r.limit, maxChunk)}
	if c.next.IsJSON {
		c.cut = func(text []byte) int { return bytes.LastIndexByte(text, '\n') + 1 }
	}
	if err := c.run(each); err != nil {
		return readError(path, err)
	}
	return nil
}

// readError returns the input error for a file whose compressed data are wrong, or else err.
func readError(path string, err error) error {
	if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &InputError{File: path, Msg: "is truncated or damaged: " + err.Error()}
	}
	return err
}

// isJSONLines reports whether a file has a JSON object on each line, by its name.
func isJSONLines(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".jsonl" || ext == ".ndjson" || ext == ".json"
}

// cutter cuts one file.
type cutter struct {
	in   io.Reader
	cut  func([]byte) int
	next Chunk  // its Text is empty
	text []byte // read and not yet part of a chunk

	limit int // bytes of a chunk
}

func (c *cutter) run(each func(Chunk) error) error {
	want := chunkBytes
	for {
		more, err := c.fill(want)
		if err != nil {
			return err
		}
		at := len(c.text)
		if more {
			at = c.cut(c.text)
		}
		switch {
		case at > 0 || !more:
			if err := each(c.take(at, !more)); err != nil || !more {
				return err
			}
			want = chunkBytes
		case want >= c.limit:
			return c.tooLong()
		default:
			want *= 4
		}
	}
}

// fill reads until the text has a length, or is complete. It reports whether there may be more.
func (c *cutter) fill(want int) (more bool, err error) {
	have := len(c.text)
	if have >= want {
		return true, nil
	}
	c.text = append(make([]byte, 0, want), c.text...)[:want]
	n, err := io.ReadFull(c.in, c.text[have:])
	c.text = c.text[:have+n]
	if err == io.EOF || err == io.ErrUnexpectedEOF && n > 0 {
		// a damaged compressed file gives ErrUnexpectedEOF too, and again at the next read
		var one [1]byte
		if _, err := c.in.Read(one[:]); err != nil && err != io.EOF {
			return false, err
		}
		return false, nil
	}
	return true, err
}

// take returns the next chunk, which is the first bytes of the text.
func (c *cutter) take(length int, isEnd bool) Chunk {
	chunk := c.next
	chunk.Text, chunk.IsEnd = c.text[:length:length], isEnd
	c.text = c.text[length:]
	c.next.Line += bytes.Count(chunk.Text, []byte("\n"))
	c.next.IsStart = false
	return chunk
}

func (c *cutter) tooLong() error {
	if c.next.IsJSON {
		return &InputError{File: c.next.File, Line: c.next.Line, Column: 1,
			Msg: fmt.Sprintf("the line is longer than %d MiB", c.limit>>20)}
	}
	return &InputError{File: c.next.File, Line: c.next.Line, Column: 1, Msg: fmt.Sprintf("the next %d MiB of text "+
		"cannot be cut without changing tokens: this tokenizer has no boundary that is certain, or there is no letter "+
		"or digit before a space or line end; write one document per line (.jsonl)", c.limit>>20)}
}
