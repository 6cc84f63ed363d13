package data

import (
	"encoding/binary"
	"io"
	"math"
	"sync"
)

// pieceBytes is the maximum size of a read buffer. A longer sample is read in pieces.
const pieceBytes = 1 << 20

// pieces pools the buffers of read.
var pieces = sync.Pool{New: func() any { return new([]byte) }}

// read decodes the tokens from number at into tokens, and the token after the last one into label. A token that is not
// below vocab is an InputError, a changed file a ChangedError, and a file that cannot be read a ReadError.
func (t *tokenFile) read(at int64, tokens []int32, label *int32, vocab int) error {
	if err := t.begin(); err != nil {
		return err
	}
	buf := pieces.Get().(*[]byte)
	defer pieces.Put(buf)
	n, limit := len(tokens)+1, int32(min(vocab-1, math.MaxInt32))
	size := min(n*t.Width, pieceBytes)
	if cap(*buf) < size {
		*buf = make([]byte, size)
	}
	for from, step := 0, size/t.Width; from < n; from += step {
		b := (*buf)[:min(n-from, step)*t.Width]
		if err := t.readAt(b, t.Offset+(at+int64(from))*int64(t.Width)); err != nil {
			return err
		}
		out := tokens[from:min(from+step, len(tokens))]
		within := decode(out, b, t.Width, limit)
		if len(b) > len(out)*t.Width {
			var last [1]int32
			within = decode(last[:], b[len(out)*t.Width:], t.Width, limit) && within
			*label = last[0]
		}
		if !within {
			if err := t.look(); err != nil {
				return err
			}
			return t.outside(at+int64(from), b, limit)
		}
	}
	return t.unchanged()
}

// readAt fills b from the file at an offset. It uses pread, so that a failing disk is an error value. For mapped memory
// it would be a signal, which a slow file system may never deliver.
func (t *tokenFile) readAt(b []byte, off int64) error {
	n, err := t.file.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return t.ended()
	}
	return readError(t.path, err)
}

// decode decodes tokens from bytes and reports whether all are at most limit. It needs no branch: it checks the sign
// bits of the tokens and of their differences to the limit.
func decode(tokens []int32, b []byte, width int, limit int32) bool {
	over := int32(0)
	switch width {
	case 1:
		b = b[:len(tokens)]
		for i, c := range b {
			tokens[i] = int32(c)
			over |= limit - int32(c)
		}
	case 2:
		for len(tokens) >= 8 && len(b) >= 16 {
			t := (*[8]int32)(tokens)
			x, y := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
			v0, v1, v2, v3 := int32(x&0xffff), int32(x>>16&0xffff), int32(x>>32&0xffff), int32(x>>48)
			v4, v5, v6, v7 := int32(y&0xffff), int32(y>>16&0xffff), int32(y>>32&0xffff), int32(y>>48)
			t[0], t[1], t[2], t[3] = v0, v1, v2, v3
			t[4], t[5], t[6], t[7] = v4, v5, v6, v7
			over |= (limit - v0) | (limit - v1) | (limit - v2) | (limit - v3) | (limit - v4) | (limit - v5) |
				(limit - v6) | (limit - v7)
			tokens, b = tokens[8:], b[16:]
		}
		for i := range tokens {
			v := int32(binary.LittleEndian.Uint16(b[2*i:]))
			tokens[i] = v
			over |= limit - v
		}
	default:
		for i := range tokens {
			v := int32(binary.LittleEndian.Uint32(b[4*i:]))
			tokens[i] = v
			over |= v | (limit - v)
		}
	}
	return over >= 0
}

// outside returns the error for the first token of b above limit. b begins with token number at.
func (t *tokenFile) outside(at int64, b []byte, limit int32) error {
	var token [1]int32
	for decode(token[:], b, t.Width, limit) {
		at, b = at+1, b[t.Width:]
	}
	return about(t.path, inputf("%s: token %d is %d, but the model's vocabulary is %d (0 to %d); was the file made "+
		"by another tokenizer?",
		t.path, at, uint32(token[0]), limit+1, limit))
}
