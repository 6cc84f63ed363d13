package tokenfiles

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
)

// megatron is a data set as Megatron's IndexedDataset reads it: tokens in a .bin file; lengths, positions and documents
// in an .idx file. Each document is one sequence. Lengths are kept in a file until the number of documents is known.
type megatron struct {
	bin, idx, lengths *partial
	width             int
	documents         int64
	length            int64 // tokens of the current document so far
	buffer            []byte
	isDone            bool
}

// Data types in an .idx file (megatron/core/datasets/indexed_dataset.py, DType).
const (
	megatronInt32  = 4
	megatronUint16 = 8
)

// uint16Vocab is the vocabulary from which Megatron stores 32-bit tokens (DType.optimal_dtype).
const uint16Vocab = 65500

// IndexOf returns the path of the index that belongs to a file of Megatron tokens.
func IndexOf(path string) string { return strings.TrimSuffix(path, ".bin") + ".idx" }

func createMegatron(path string, vocab int) (Output, error) {
	m := &megatron{width: 4}
	if vocab < uint16Vocab {
		m.width = 2
	}
	idx := IndexOf(path)
	var err error
	for _, f := range []struct {
		file *(*partial)
		path string
	}{{&m.bin, path}, {&m.idx, idx}, {&m.lengths, idx + ".lengths"}} {
		*f.file, err = createPartial(f.path)
		if err != nil {
			m.Discard()
			return nil, err
		}
	}
	return m, nil
}

// Write implements [Sink].
func (m *megatron) Write(tokens []int32, ends []int) error {
	m.buffer = appendTokens(m.buffer[:0], tokens, m.width)
	if _, err := m.bin.Write(m.buffer); err != nil {
		return err
	}
	from := 0
	for _, end := range ends {
		m.length += int64(end - from)
		from = end
		if err := m.endDocument(); err != nil {
			return err
		}
	}
	m.length += int64(len(tokens) - from)
	return nil
}

func (m *megatron) endDocument() error {
	if m.length > math.MaxInt32 {
		return errors.New("a document has more than 2147483647 tokens, the most that an .idx file can hold; use " +
			"--format nanogpt or llmc")
	}
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], uint32(m.length))
	_, err := m.lengths.Write(b[:])
	m.documents++
	m.length = 0
	return err
}

// Finish implements [Output].
func (m *megatron) Finish() ([]string, error) {
	if m.length > 0 {
		if err := m.endDocument(); err != nil {
			return nil, err
		}
	}
	err := errors.Join(m.bin.close(), m.lengths.Flush(), m.writeIndex(), m.idx.close())
	if err != nil {
		return nil, err
	}
	// the index last, because readers need both
	if err := errors.Join(m.bin.publish(), m.idx.publish()); err != nil {
		return nil, err
	}
	m.lengths.discard()
	m.isDone = true
	return []string{m.bin.path, m.idx.path}, nil
}

func (m *megatron) writeIndex() error {
	dtype := byte(megatronInt32)
	if m.width == 2 {
		dtype = megatronUint16
	}
	head := binary.LittleEndian.AppendUint64([]byte("MMIDIDX\x00\x00"), 1)
	head = append(head, dtype)
	head = binary.LittleEndian.AppendUint64(head, uint64(m.documents))
	head = binary.LittleEndian.AppendUint64(head, uint64(m.documents+1))
	if _, err := m.idx.Write(head); err != nil {
		return err
	}
	if _, err := io.Copy(m.idx, io.NewSectionReader(m.lengths.file, 0, 4*m.documents)); err != nil {
		return err
	}
	lengths := bufio.NewReaderSize(io.NewSectionReader(m.lengths.file, 0, 4*m.documents), chunkBytes)
	position := int64(0)
	var b [8]byte
	for range m.documents {
		if err := m.writeInt(position); err != nil {
			return err
		}
		if _, err := io.ReadFull(lengths, b[:4]); err != nil {
			return err
		}
		position += int64(binary.LittleEndian.Uint32(b[:4])) * int64(m.width)
	}
	for d := range m.documents + 1 {
		if err := m.writeInt(d); err != nil {
			return err
		}
	}
	return nil
}

func (m *megatron) writeInt(v int64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	_, err := m.idx.Write(b[:])
	return err
}

// Discard implements [Output].
func (m *megatron) Discard() {
	for _, f := range []*partial{m.bin, m.idx, m.lengths} {
		if f != nil && !m.isDone {
			f.discard()
		}
	}
}
