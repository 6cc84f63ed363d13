package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Format is how a file stores its tokens.
type Format struct {
	Name   string // "text", "nanoGPT tokens", "llm.c tokens", "Megatron tokens"
	Width  int    // bytes per token: 1, 2 or 4, little-endian
	Offset int64  // byte offset of the first token
	Tokens int64
}

// tokenFile is an open file of tokens. Any number of goroutines may read it.
type tokenFile struct {
	path string
	Format
	file      *os.File
	info      os.FileInfo // when the file was opened
	watch     watch
	documents *documents // nil if the file is cut into windows as a whole
	borders   *documents // nil if its windows do not depend on where documents end
}

// samples returns the number of windows of n tokens, including the shorter ones at the end.
func (t *tokenFile) samples(n int64) int64 {
	if t.documents != nil {
		return t.documents.samples
	}
	return (t.Tokens - 1 + n - 1) / n
}

// window returns the first token of sample k of n tokens, and how many of its tokens have a label.
func (t *tokenFile) window(k, n int64) (at, labels int64) {
	if t.documents != nil {
		return t.documents.window(k)
	}
	return k * n, min(n, t.Tokens-1-k*n)
}

// shardHeader is the size of llm.c's header: 256 little-endian int32. The first three are the kind of file, its version
// and the number of tokens.
const shardHeader = 256 * 4

// shards are the kinds of llm.c files that hold tokens.
var shards = map[uint32]struct {
	version uint32
	width   int
}{
	20240520: {1, 2},
	20240801: {7, 4},
}

// otherShards are llm.c's other files, by the first number of the header.
var otherShards = map[uint32]string{
	20240326: "model checkpoint", 20240327: "debug state", 20240328: "tokenizer", 20240522: "evaluation set",
	20240527: "optimizer state", 20240803: "Llama checkpoint",
}

// openTokens opens a file as tokens of a vocabulary of that size. Files named .bin already hold tokens. All others are
// text for the named tokenizer.
func openTokens(path, tokenizer string, vocab int) (*tokenFile, error) {
	isBin := strings.EqualFold(filepath.Ext(path), ".bin")
	if !isBin && !IsBytes(tokenizer) {
		return nil, about(path, textNeedsTokens(path, tokenizer))
	}
	f, info, err := openFile(path)
	if err != nil {
		return nil, about(path, err)
	}
	t := &tokenFile{path: path, file: f, info: info}
	if index := indexOf(path); isBin && index != "" {
		t.Format, err = megatron(index, info.Size())
	} else {
		t.Format, err = detect(f, info.Size(), path)
	}
	if err == nil && !isBin && vocab < byteVocab {
		err = badFile("is text, whose tokens are bytes, 0 to %d, but the model's vocabulary is %d", byteVocab-1, vocab)
	}
	if bad := (*InputError)(nil); errors.As(err, &bad) {
		err = about(path, inputf("%s %s", path, bad.Msg))
	} else if err != nil {
		err = readError(path, err)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return t, nil
}

// about sets the file that an InputError concerns.
func about(path string, err error) error {
	if bad := (*InputError)(nil); errors.As(err, &bad) {
		bad.File = path
	}
	return err
}

// detect returns the format of a file from its name, size and content. A refused file is an InputError without the
// path.
func detect(r io.ReaderAt, size int64, path string) (Format, error) {
	isBin := strings.EqualFold(filepath.Ext(path), ".bin")
	if size == 0 {
		return Format{}, badFile("is empty")
	}
	head := make([]byte, min(size, headBytes))
	if _, err := r.ReadAt(head, 0); err != nil {
		return Format{}, err
	}
	if err := otherFile(path, head, size, isBin); err != nil {
		return Format{}, err
	}
	if !isBin {
		return plain(r, size, path)
	}
	var h [12]byte
	copy(h[:], head)
	magic := binary.LittleEndian.Uint32(h[0:])
	if kind, ok := otherShards[magic]; ok {
		return Format{}, badFile("is llm.c's %s, not tokens", kind)
	}
	s, ok := shards[magic]
	if !ok {
		return headerless(r, size, path)
	}
	if size < shardHeader {
		return Format{}, badFile("is truncated: it begins as llm.c's tokens do, and their header alone takes %d "+
			"bytes; it has %d", shardHeader, size)
	}
	if v := binary.LittleEndian.Uint32(h[4:]); v != s.version {
		return Format{}, badFile("is an llm.c token file of version %d; it must be version %d", v, s.version)
	}
	n := int64(binary.LittleEndian.Uint32(h[8:]))
	switch want := shardHeader + n*int64(s.width); {
	case n == 0:
		return Format{}, badFile("is empty: its header says 0 tokens")
	case size < want:
		return Format{}, badFile("is truncated: its header says %d tokens, which take %d bytes, but it has %d",
			n, want, size)
	case size > want:
		return Format{}, badFile("is too long: its header says %d tokens, which take %d bytes, but it has %d",
			n, want, size)
	}
	return Format{Name: "llm.c tokens", Width: s.width, Offset: shardHeader, Tokens: n}, nil
}

// plain returns the format of text with one token per byte.
func plain(r io.ReaderAt, size int64, path string) (Format, error) {
	if err := refusedName(path); err != nil {
		return Format{}, err
	}
	wide, err := wideNumbers(r, size)
	if err != nil {
		return Format{}, err
	}
	if wide != nil {
		return Format{}, badFile("seems to hold %d-bit integers, but each byte of a file that is not named .bin is a "+
			"token; %s", 8*wide.bytes, toTokens)
	}
	encoding, err := alternates(r, size)
	if err != nil {
		return Format{}, err
	}
	if encoding != "" {
		return Format{}, badFile("has a 0 as every second byte, as %s and 16-bit tokens have, but each byte of a "+
			"text file is a token; "+
			"convert text to UTF-8: iconv -f %[1]s -t UTF-8 %s >data.txt; name a file of 16-bit tokens .bin",
			encoding, path)
	}
	return Format{Name: "text", Width: 1, Tokens: size}, nil
}

// headerless returns the format of nanoGPT's files.
func headerless(r io.ReaderAt, size int64, path string) (Format, error) {
	text, err := printable(r, size)
	if err != nil {
		return Format{}, err
	}
	if text {
		return Format{}, badFile("seems to be text, but a .bin file is read as 16-bit tokens; give it a name that " +
			"ends in .txt")
	}
	if size%2 != 0 {
		return Format{}, badFile("has an odd length, %d bytes: 16-bit tokens were cut off, or it holds something else",
			size)
	}
	wide, err := wideNumbers(r, size)
	if err != nil {
		return Format{}, err
	}
	if wide != nil {
		bits := 8 * wide.bytes
		remedy := fmt.Sprintf("numpy.fromfile(%q, 'int%d').astype('uint16').tofile('tokens.bin') writes 16-bit tokens",
			path, bits)
		if wide.upper > 0 {
			remedy = "some of them do not fit into 16 bits, so write 32-bit tokens after llm.c's header (kind " +
				"20240801, version 7)"
		}
		return Format{}, badFile("seems to hold %d-bit integers, but a .bin file without llm.c's header is read as "+
			"16-bit tokens; %s", bits, remedy)
	}
	return Format{Name: "nanoGPT tokens", Width: 2, Tokens: size / 2}, nil
}

// badFile returns an InputError whose text follows the file's name, which the caller puts in front.
func badFile(format string, args ...any) error {
	return &InputError{Msg: fmt.Sprintf(format, args...)}
}
