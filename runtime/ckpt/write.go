package ckpt

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// maxHeader is the maximum length of a header that readers of safetensors accept, in bytes.
const maxHeader = 100_000_000

// metadataKey is a reserved name that no tensor may have.
const metadataKey = "__metadata__"

// Writer writes a safetensors file as a stream: first the header, then the tensors' bytes in the order in which
// NewWriter received the tensors.
type Writer struct {
	w       io.Writer
	total   int64 // bytes of all tensors
	written int64
}

// NewWriter writes the header. Tensors must have different names; metadata may be nil. The tensors are stored in the
// given order without gaps. The header is padded so that the first tensor begins at a multiple of 8.
func NewWriter(w io.Writer, tensors []Tensor, metadata map[string]string) (*Writer, error) {
	header, total, err := encodeHeader(tensors, metadata)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, err
	}
	return &Writer{w: w, total: total}, nil
}

// Write writes the next bytes of the tensors. It fails before it writes more bytes than the header announces.
func (w *Writer) Write(p []byte) (int, error) {
	if int64(len(p)) > w.total-w.written {
		return 0, fmt.Errorf("checkpoint: %d bytes of tensors, and the header says %d",
			w.written+int64(len(p)), w.total)
	}
	n, err := w.w.Write(p)
	w.written += int64(n)
	return n, err
}

// Written returns the number of tensor bytes written so far.
func (w *Writer) Written() int64 { return w.written }

// Close returns an error if bytes are missing. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.written != w.total {
		return fmt.Errorf("checkpoint: %d bytes of tensors, and the header says %d", w.written, w.total)
	}
	return nil
}

// encodeHeader returns the length and the header, and the size of the data that follows.
func encodeHeader(tensors []Tensor, metadata map[string]string) ([]byte, int64, error) {
	h := append(make([]byte, 8), '{')
	if len(metadata) > 0 {
		h = append(h, `"`+metadataKey+`":{`...)
		for i, k := range slices.Sorted(maps.Keys(metadata)) {
			if i > 0 {
				h = append(h, ',')
			}
			h = append(append(append(h, quoteJSON(k)...), ':'), quoteJSON(metadata[k])...)
		}
		h = append(h, '}')
	}
	seen := map[string]bool{metadataKey: true}
	at := int64(0)
	for _, t := range tensors {
		n, err := t.bytes()
		if err == nil && seen[t.Name] {
			err = fmt.Errorf("two tensors are named %q", t.Name)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("checkpoint: %w", err)
		}
		seen[t.Name] = true
		if len(h) > 9 {
			h = append(h, ',')
		}
		shape := strings.Join(strings.Fields(fmt.Sprint(t.Shape)), ",") // [1 2] to [1,2]
		h = fmt.Appendf(h, `%s:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, quoteJSON(t.Name), t.DType,
			shape, at, at+n)
		at += n
	}
	h = append(h, '}')
	for len(h)%8 != 0 {
		h = append(h, ' ')
	}
	if len(h)-8 > maxHeader {
		return nil, 0, fmt.Errorf("checkpoint: a header of %d bytes; readers accept %d", len(h)-8, maxHeader)
	}
	binary.LittleEndian.PutUint64(h, uint64(len(h)-8))
	return h, at, nil
}

func quoteJSON(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("ckpt: a string that is no JSON: %v", err))
	}
	return b
}
