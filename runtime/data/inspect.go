package data

import (
	"bufio"
	"encoding/binary"
	"io"
	"iter"
)

// File is an open file of tokens, to be read from its beginning to its end.
type File struct{ t *tokenFile }

// OpenFile opens a file of tokens, or of text whose tokens are bytes. Errors about the file are InputErrors.
func OpenFile(path string) (*File, error) {
	t, err := openTokens(path, "bytes", byteVocab)
	if err != nil {
		return nil, err
	}
	return &File{t}, nil
}

// Format returns the format that the file was found to have.
func (f *File) Format() Format { return f.t.Format }

// Close closes the file.
func (f *File) Close() error { return f.t.file.Close() }

// Sequences returns the lengths of the sequences of a Megatron data set, in tokens and in order. Other files have none.
// It ends early with an error if the index cannot be read.
func (f *File) Sequences() iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		path := indexOf(f.t.path)
		if f.t.Format.Name != megatronName {
			return
		}
		file, _, err := openFile(path)
		if err != nil {
			yield(0, err)
			return
		}
		defer file.Close()
		head := make([]byte, indexHeader)
		in := bufio.NewReaderSize(file, pieceBytes)
		if _, err := io.ReadFull(in, head); err != nil {
			yield(0, readError(path, err))
			return
		}
		var length [4]byte
		for range binary.LittleEndian.Uint64(head[len(indexMark)+9:]) {
			_, err := io.ReadFull(in, length[:])
			if err != nil {
				err = readError(path, err)
			}
			if !yield(int64(binary.LittleEndian.Uint32(length[:])), err) || err != nil {
				return
			}
		}
	}
}

// scanned is the number of tokens that are read at once.
const scanned = 1 << 18

// Scan calls each for consecutive tokens until it returns an error. The slice is valid until each returns.
func (f *File) Scan(each func(tokens []int32) error) error {
	tokens := make([]int32, scanned)
	bytes := make([]byte, scanned*f.t.Width)
	for at := int64(0); at < f.t.Tokens; at += scanned {
		n := min(scanned, f.t.Tokens-at)
		b := bytes[:n*int64(f.t.Width)]
		if err := f.t.readAt(b, f.t.Offset+at*int64(f.t.Width)); err != nil {
			return err
		}
		decode(tokens[:n], b, f.t.Width, 0)
		if err := each(tokens[:n]); err != nil {
			return err
		}
	}
	return nil
}
