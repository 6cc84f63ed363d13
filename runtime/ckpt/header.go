package ckpt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// entry is a tensor and its position in the bytes after the header.
type entry struct {
	Tensor
	begin, end int64
}

// parseHeader parses a safetensors header, which is JSON with padding, of a file with size bytes after it. It accepts
// exactly what the format allows: every byte belongs to one tensor, and no key occurs twice. The entries are in the
// order of the file.
func parseHeader(h []byte, size int64) ([]entry, map[string]string, error) {
	if len(h) == 0 || h[0] != '{' {
		return nil, nil, errors.New("its header does not begin with {")
	}
	if !utf8.Valid(h) {
		return nil, nil, errors.New("its header is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(h))
	dec.UseNumber()
	var entries []entry
	var metadata map[string]string
	err := object(dec, func(name string) (err error) {
		if name == metadataKey {
			metadata, err = parseMetadata(dec)
			return err
		}
		e, err := parseEntry(dec, name)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("its header is wrong: %w", err)
	}
	if rest := bytes.TrimLeft(h[dec.InputOffset():], " "); len(rest) > 0 {
		return nil, nil, fmt.Errorf("its header goes on after the last }, with %q", rest[:min(len(rest), 16)])
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	return entries, metadata, covered(entries, size)
}

// covered checks that the sorted entries are adjacent and fill size bytes.
func covered(entries []entry, size int64) error {
	at := int64(0)
	for _, e := range entries {
		switch {
		case e.begin < at:
			return fmt.Errorf("tensor %q begins at byte %d, inside the tensor before it, which ends at %d", e.Name,
				e.begin, at)
		case e.begin > at:
			return fmt.Errorf("there is a hole between bytes %d and %d, before tensor %q", at, e.begin, e.Name)
		}
		at = e.end
	}
	if at > size {
		return fmt.Errorf("it is truncated: its tensors take %d bytes, and it has %d", at, size)
	}
	if at < size {
		return fmt.Errorf("it is too long: its tensors take %d bytes, and it has %d", at, size)
	}
	return nil
}

// object parses an object and calls value for each key. No key may occur twice.
func object(dec *json.Decoder, value func(key string) error) error {
	if t, err := dec.Token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return fmt.Errorf("%v in place of an object", t)
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		key := t.(string) // the decoder accepts nothing else here
		if seen[key] {
			return fmt.Errorf("key %q occurs twice", key)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

func parseMetadata(dec *json.Decoder) (map[string]string, error) {
	metadata := map[string]string{}
	err := object(dec, func(key string) error {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		s, ok := t.(string)
		if !ok {
			return fmt.Errorf("metadata %q is not a string", key)
		}
		metadata[key] = s
		return nil
	})
	return metadata, err
}

func parseEntry(dec *json.Decoder, name string) (entry, error) {
	e := entry{Tensor: Tensor{Name: name}}
	fields := map[string]any{}
	err := object(dec, func(key string) error {
		var v any
		err := dec.Decode(&v)
		fields[key] = v
		return err
	})
	if err != nil {
		return e, err
	}
	dtype, ok := fields["dtype"].(string)
	shape, shapeOK := integers(fields["shape"])
	offsets, offsetsOK := integers(fields["data_offsets"])
	switch {
	case len(fields) != 3 || !ok || !shapeOK || !offsetsOK:
		return e, fmt.Errorf("tensor %q must have dtype, shape and data_offsets, and nothing else", name)
	case len(offsets) != 2 || offsets[0] > offsets[1]:
		return e, fmt.Errorf("tensor %q has the offsets %v", name, offsets)
	}
	e.DType, e.Shape, e.begin, e.end = DType(dtype), shape, offsets[0], offsets[1]
	n, err := e.bytes()
	if err == nil && n != e.end-e.begin {
		err = fmt.Errorf("tensor %q of %s%v takes %d bytes, and its offsets say %d", name, e.DType, e.Shape, n,
			e.end-e.begin)
	}
	return e, err
}

// integers converts a decoded JSON array of non-negative integers.
func integers(v any) ([]int64, bool) {
	list, ok := v.([]any)
	ints := make([]int64, len(list))
	for i, x := range list {
		num, isNum := x.(json.Number)
		n, err := strconv.ParseUint(num.String(), 10, 63)
		if !isNum || err != nil {
			return nil, false
		}
		ints[i] = int64(n)
	}
	return ints, ok
}
