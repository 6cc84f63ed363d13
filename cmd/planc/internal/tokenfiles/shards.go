package tokenfiles

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Output is a set of files of tokens that is being written.
type Output interface {
	Sink

	// Finish completes all files and gives them their names, which it returns.
	Finish() ([]string, error)

	// Discard removes what has been written. It does nothing after Finish.
	Discard()
}

// Formats are the names of the formats.
var Formats = []string{"nanogpt", "llmc", "megatron"}

// DefaultFormat returns the format for tokens of a vocabulary.
func DefaultFormat(vocab int) string {
	if vocab <= 1<<16 {
		return "nanogpt"
	}
	return "llmc"
}

// maxShard is the largest number of tokens in a file of llm.c, whose header has it as an int32.
const maxShard = math.MaxInt32

// Create begins to write files of a format. shard is the maximum number of tokens of a file; 0 means as many as the
// format allows.
func Create(format, path string, vocab int, shard int64) (Output, error) {
	if format == "megatron" {
		return createMegatron(path, vocab)
	}
	idx := IndexOf(path)
	if _, err := os.Stat(idx); err == nil {
		return nil, &InputError{File: idx, Msg: fmt.Sprintf("this index of Megatron tokens would be taken for the "+
			"index of %s: remove it, or choose another name", filepath.Base(path))}
	}
	s := &shards{path: path, limit: shard, width: 4}
	if vocab <= 1<<16 {
		s.width = 2
	}
	if format == "llmc" {
		s.hasHeader = true
		if s.limit == 0 {
			s.limit = maxShard
		}
	}
	if s.limit == 0 {
		s.limit = math.MaxInt64
	}
	return s, s.begin()
}

// shards are files of nanoGPT's format or, with headers, of llm.c's.
type shards struct {
	path      string
	limit     int64 // tokens of a file
	width     int   // bytes of a token
	hasHeader bool
	files     []*partial
	tokens    int64 // in the last file
	buffer    []byte
}

// headerBytes is the size of llm.c's header: 256 numbers of 32 bits.
const headerBytes = 256 * 4

// header returns llm.c's header: the kind of the file, its version, and the number of tokens.
func (s *shards) header() []byte {
	kind, version := uint32(20240520), uint32(1)
	if s.width == 4 {
		kind, version = 20240801, 7
	}
	b := make([]byte, headerBytes)
	binary.LittleEndian.PutUint32(b[0:], kind)
	binary.LittleEndian.PutUint32(b[4:], version)
	binary.LittleEndian.PutUint32(b[8:], uint32(s.tokens))
	return b
}

// begin begins the next file.
func (s *shards) begin() error {
	if len(s.files) > 0 {
		if err := s.complete(); err != nil {
			return err
		}
	}
	f, err := createPartial(s.path)
	if err != nil {
		return err
	}
	s.files, s.tokens = append(s.files, f), 0
	if s.hasHeader {
		_, err = f.Write(s.header())
	}
	return err
}

// complete completes the last file.
func (s *shards) complete() error {
	f := s.files[len(s.files)-1]
	if s.hasHeader {
		if err := f.Flush(); err != nil {
			return err
		}
		if _, err := f.file.WriteAt(s.header(), 0); err != nil {
			return err
		}
	}
	return f.close()
}

// Write implements [Sink].
func (s *shards) Write(tokens []int32, _ []int) error {
	for len(tokens) > 0 {
		if s.tokens == s.limit {
			if err := s.begin(); err != nil {
				return err
			}
		}
		n := int(min(int64(len(tokens)), s.limit-s.tokens))
		s.buffer = appendTokens(s.buffer[:0], tokens[:n], s.width)
		if _, err := s.files[len(s.files)-1].Write(s.buffer); err != nil {
			return err
		}
		s.tokens += int64(n)
		tokens = tokens[n:]
	}
	return nil
}

// appendTokens appends tokens as little-endian integers of 2 or 4 bytes.
func appendTokens(to []byte, tokens []int32, width int) []byte {
	for _, t := range tokens {
		if width == 2 {
			to = binary.LittleEndian.AppendUint16(to, uint16(t))
		} else {
			to = binary.LittleEndian.AppendUint32(to, uint32(t))
		}
	}
	return to
}

// Finish implements [Output]. Several files are numbered from 1: train_000001.bin.
func (s *shards) Finish() (names []string, err error) {
	if err := s.complete(); err != nil {
		return nil, err
	}
	ext := filepath.Ext(s.path)
	for i, f := range s.files {
		if len(s.files) > 1 {
			f.path = fmt.Sprintf("%s_%06d%s", strings.TrimSuffix(s.path, ext), i+1, ext)
		}
		if err := f.publish(); err != nil {
			return names, err
		}
		names = append(names, f.path)
	}
	s.files = nil
	return names, nil
}

// Discard implements [Output].
func (s *shards) Discard() {
	for _, f := range s.files {
		f.discard()
	}
}
