package data

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A Megatron data set is a .bin file of tokens with an .idx file, which has the type of the tokens, and the length and
// position of each sequence (megatron/core/datasets/indexed_dataset.py). Sequences follow each other in the .bin file,
// so that it is read like any other file of tokens.
const (
	megatronName = "Megatron tokens"
	indexMark    = "MMIDIDX\x00\x00"
	indexVersion = 1
	indexHeader  = len(indexMark) + 8 + 1 + 8 + 8 // mark, version, type, sequences, documents + 1
)

// indexTypes are the types of tokens by their code. The width is 0 if training cannot read the type.
var indexTypes = map[byte]struct {
	name  string
	width int
}{1: {"uint8", 1}, 2: {"int8", 0}, 3: {"int16", 2}, 4: {"int32", 4}, 5: {"int64", 0}, 6: {"float64", 0},
	7: {"float32", 0}, 8: {"uint16", 2}}

// indexOf returns the path of the .idx file that a .bin file has, or "".
func indexOf(path string) string {
	index := strings.TrimSuffix(path, filepath.Ext(path)) + ".idx"
	if _, err := os.Stat(index); err != nil {
		return ""
	}
	return index
}

// index is an open .idx file.
type index struct {
	file      *os.File
	name      string // without its folder
	width     int64
	sequences int64
}

// megatron returns the format of a .bin file of that size, from its .idx file. A refused file is an InputError without
// the path of the .bin file.
func megatron(path string, size int64) (Format, error) {
	f, info, err := openFile(path)
	if err != nil {
		return Format{}, err
	}
	defer f.Close()
	x := &index{file: f, name: filepath.Base(path)}
	if err := x.readHeader(info.Size()); err != nil {
		return Format{}, err
	}
	want, err := x.end()
	switch {
	case err != nil:
		return Format{}, err
	case want == 0:
		return Format{}, badFile("is empty: its index %s has no tokens", x.name)
	case size != want:
		state := "truncated"
		if size > want {
			state = "too long"
		}
		return Format{}, badFile("is %s: its index %s says %d tokens, which take %d bytes, but it has "+
			"%d", state, x.name,
			want/x.width, want, size)
	}
	return Format{Name: megatronName, Width: int(x.width), Tokens: size / x.width}, nil
}

// readHeader reads and checks the header of an index file of that size.
func (x *index) readHeader(size int64) error {
	head := make([]byte, min(size, int64(indexHeader)))
	if _, err := x.file.ReadAt(head, 0); err != nil && err != io.EOF {
		return readError(x.file.Name(), err)
	}
	switch {
	case !strings.HasPrefix(string(head), indexMark):
		return badFile("has the file %s next to it, which is not the index of a Megatron data set; rename one of them",
			x.name)
	case len(head) < indexHeader:
		return badFile("has a truncated index: %s has %d bytes, but its header alone takes "+
			"%d", x.name, size, indexHeader)
	}
	rest := head[len(indexMark):]
	version, code := binary.LittleEndian.Uint64(rest), rest[8]
	if version != indexVersion {
		return badFile("has the index %s of version %d; it must be version %d", x.name, version, indexVersion)
	}
	kind := indexTypes[code]
	if kind.width == 0 {
		return badFile("has tokens of type %s (code %d in %s); they must be uint8, int16, uint16 or "+
			"int32", kind.name, code,
			x.name)
	}
	x.width = int64(kind.width)
	sequences, documents := binary.LittleEndian.Uint64(rest[9:]), binary.LittleEndian.Uint64(rest[17:])
	const limit = 1 << 56 // so that sizes do not overflow
	if sequences > limit || documents > limit {
		return badFile("has the damaged index %s: it says %d sequences and %d documents", x.name, sequences, documents)
	}
	x.sequences = int64(sequences)
	// the lengths, positions and documents; then, in some data sets, a byte per sequence
	need := int64(indexHeader) + 12*x.sequences + 8*int64(documents)
	if size != need && size != need+x.sequences {
		state := "truncated"
		if size > need {
			state = "too long"
		}
		return badFile("has a %s index: the header of %s says %d sequences, which take %d bytes, but it has %d", state,
			x.name, sequences, need, size)
	}
	return nil
}

// indexProbes is the number of sequences whose positions are checked, evenly spread from the first to the last.
const indexProbes = 64

// end returns the number of bytes that the sequences take. It checks that each sequence which it looks at begins where
// the one before it ends.
func (x *index) end() (int64, error) {
	if x.sequences == 0 {
		return 0, nil
	}
	step := max(1, (x.sequences-1)/(indexProbes-1))
	for i := int64(0); ; i = min(i+step, x.sequences-1) {
		begin, end, err := x.sequence(i)
		if err != nil {
			return 0, err
		}
		want := int64(0)
		if i > 0 {
			_, want, err = x.sequence(i - 1)
		}
		if err != nil {
			return 0, err
		}
		if begin != want {
			return 0, badFile("cannot be read as consecutive tokens: the index %s says that sequence %d begins "+
				"at byte %d, "+
				"but the one before it ends at %d", x.name, i, begin, want)
		}
		if i == x.sequences-1 {
			return end, nil
		}
	}
}

// sequence returns where a sequence begins and ends in the .bin file.
func (x *index) sequence(i int64) (begin, end int64, err error) {
	var length [4]byte
	var position [8]byte
	lengths := int64(indexHeader)
	_, err = x.file.ReadAt(length[:], lengths+4*i)
	if err == nil {
		_, err = x.file.ReadAt(position[:], lengths+4*x.sequences+8*i)
	}
	if err != nil {
		return 0, 0, readError(x.file.Name(), err)
	}
	begin = int64(binary.LittleEndian.Uint64(position[:]))
	return begin, begin + x.width*int64(int32(binary.LittleEndian.Uint32(length[:]))), nil
}
