package data

import (
	"encoding/binary"
	"io"
)

// The parts of a file that are inspected to find the width of its numbers: beginning, middle and end.
const (
	probes     = 3
	probeBytes = 16 << 10
)

// eachProbe calls look with parts of the file, each beginning at a multiple of 8 bytes. A short file is one part.
func eachProbe(r io.ReaderAt, size int64, look func([]byte)) error {
	b := make([]byte, min(size, probeBytes))
	for i := range int64(probes) {
		at := (size - int64(len(b))) / (probes - 1) * i &^ 7
		if _, err := r.ReadAt(b, at); err != nil {
			return err
		}
		look(b)
		if size <= probeBytes {
			break
		}
	}
	return nil
}

// Wide integers are distinguished from text and from 16-bit tokens by their upper halves, which are 0 or nearly so.
const (
	enoughNumbers = 16      // fewer numbers are not sufficient for a decision
	vocabBound    = 1 << 20 // no vocabulary is larger
	lowestMark    = -1024   // negative numbers mark padding and ignored labels: -1, -100
)

// wideNumbers returns the width if a file seems to hold integers of 64 or 32 bits; nil if not, or if the file is too
// short to decide. That is so if each number is a token of some vocabulary or a mark, and the numbers vary as tokens
// do.
func wideNumbers(r io.ReaderAt, size int64) (*width, error) {
	wide := []*width{{bytes: 8}, {bytes: 4}}
	err := eachProbe(r, size, func(b []byte) {
		for _, w := range wide {
			w.look(b)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, w := range wide {
		if size%int64(w.bytes) == 0 && w.fits() {
			return w, nil
		}
	}
	return nil, nil
}

// width holds statistics of a file's numbers under the assumption that each has that many bytes.
type width struct {
	bytes             int
	n, nonzero, large int
	upper             uint16 // the largest upper half of a token
	wrong             bool   // a number is neither a token nor a mark
}

func (w *width) look(b []byte) {
	for ; len(b) >= w.bytes && !w.wrong; b = b[w.bytes:] {
		v := int64(int32(binary.LittleEndian.Uint32(b)))
		if w.bytes == 8 {
			v = int64(binary.LittleEndian.Uint64(b))
		}
		w.n++
		w.wrong = v < lowestMark || v >= vocabBound
		if v <= 0 {
			continue
		}
		w.nonzero++
		w.upper = max(w.upper, uint16(v>>16))
		if uint16(v) >= vocabBound>>16 {
			w.large++
		}
	}
}

// fits reports whether the numbers have that width. If all upper halves are 0, as in a vocabulary of up to 65,536, some
// lower halves must differ from 0. Otherwise half of the lower halves must be larger than an upper half can be.
func (w *width) fits() bool {
	if w.wrong || w.n < enoughNumbers {
		return false
	}
	if w.upper == 0 {
		return w.nonzero >= w.n/4 && w.nonzero > 0
	}
	return w.large >= w.n/2
}

// alternates reports whether every second byte of a file is often 0 and the others hardly ever: the odd ones, as in
// UTF-16LE, or the even ones, as in UTF-16BE. It returns the name of that encoding, or "". In UTF-16, letters of
// European languages, spaces and line ends have such a byte; in UTF-8 nothing has.
func alternates(r io.ReaderAt, size int64) (string, error) {
	var zeros [2]int // at even and odd offsets
	pairs := 0
	err := eachProbe(r, size, func(b []byte) {
		for i, c := range b {
			if c == 0 {
				zeros[i%2]++
			}
		}
		pairs += len(b) / 2
	})
	if err != nil || pairs < enoughNumbers/2 {
		return "", err
	}
	const enough, few = 20, 20 // at least 1/20 of all, and at most 1/20 of those
	switch even, odd := zeros[0], zeros[1]; {
	case odd >= max(pairs/enough, 1) && even <= odd/few:
		return "UTF-16LE", nil
	case even >= max(pairs/enough, 1) && odd <= even/few:
		return "UTF-16BE", nil
	}
	return "", nil
}

// printable reports whether a file is ASCII text: printable characters, tabs and line ends. 16-bit tokens are not all
// pairs of these.
func printable(r io.ReaderAt, size int64) (bool, error) {
	text := size >= 2*enoughNumbers
	err := eachProbe(r, size, func(b []byte) {
		for _, c := range b {
			text = text && (' ' <= c && c <= '~' || '\t' <= c && c <= '\r')
		}
	})
	return text, err
}
