package ckpt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
)

// raw is a safetensors file of that header and data.
func raw(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func tempFile(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRoundTrip(t *testing.T) {
	tensors := []Tensor{
		{"wte", F32, []int64{3, 2}}, {"odd \"name\"\n·", U8, []int64{5}}, {"t", I64, nil},
		{"none", F64, []int64{0, 7}}, {"d", F64, []int64{2}},
	}
	metadata := map[string]string{"format": "pt", "a": "x \"y\""}
	var b bytes.Buffer
	w, err := NewWriter(&b, tensors, metadata)
	if err != nil {
		t.Fatal(err)
	}
	if (b.Len())%8 != 0 {
		t.Errorf("the first tensor begins at byte %d", b.Len())
	}
	payload := make([]byte, 24+5+8+0+16)
	for i := range payload {
		payload[i] = byte(i)
	}
	for len(payload) > 0 { // pieces do not have to be whole tensors
		n := min(7, len(payload))
		if _, err := w.Write(payload[:n]); err != nil {
			t.Fatal(err)
		}
		payload = payload[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(tempFile(t, b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensors[2].Shape = []int64{} // a scalar's
	if got := f.Tensors(); !reflect.DeepEqual(got, tensors) {
		t.Errorf("tensors are %v, want %v", got, tensors)
	}
	if !maps.Equal(f.Metadata(), metadata) {
		t.Errorf("metadata is %v", f.Metadata())
	}
	for name, want := range map[string][2]int{"wte": {0, 24}, "odd \"name\"\n·": {24, 29}, "t": {29, 37},
		"none": {37, 37}, "d": {37, 53}} {
		_, r, err := f.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || len(got) != want[1]-want[0] || len(got) > 0 && got[0] != byte(want[0]) {
			t.Errorf("%q holds %v, %v", name, got, err)
		}
	}
	_, _, err = f.Tensor("wpe")
	var input *InputError
	if !errors.As(err, &input) || !strings.HasSuffix(err.Error(),
		`has no tensor wpe (it has wte, odd "name"`+"\n"+`·, t and 2 more)`) {
		t.Error(err)
	}
}

// The header as readers of the format know it.
func TestGoldenFile(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, []Tensor{{"b", F32, []int64{1, 2}}, {"a", BF16, nil}}, map[string]string{"k": "v"})
	if err != nil {
		t.Fatal(err)
	}
	w.Write(make([]byte, 10))
	const header = `{"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"a":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}} `
	if want := raw(header, 10); !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got  %q\nwant %q", b.Bytes(), want)
	}
}

func TestWriterRefuses(t *testing.T) {
	tests := []struct {
		tensors []Tensor
		want    string
	}{
		{[]Tensor{{"a", F32, nil}, {"a", F32, nil}}, `checkpoint: two tensors are named "a"`},
		{[]Tensor{{"__metadata__", F32, nil}}, `checkpoint: two tensors are named "__metadata__"`},
		{[]Tensor{{"a", "F31", nil}}, `checkpoint: tensor "a" has the unknown type "F31"`},
		{[]Tensor{{"a", F32, []int64{-1}}}, `checkpoint: tensor "a" has the negative dimension -1`},
		{[]Tensor{{"a", F32, []int64{1 << 40, 1 << 40}}},
			`checkpoint: tensor "a" has too many elements: shape [1099511627776 1099511627776]`},
		{[]Tensor{{"a", "F4", []int64{3}}}, `checkpoint: tensor "a" of 12 bits does not end at a byte`},
	}
	for _, tt := range tests {
		if _, err := NewWriter(io.Discard, tt.tensors, nil); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	w, err := NewWriter(io.Discard, []Tensor{{"a", F32, []int64{2}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil || err.Error() != "checkpoint: 0 bytes of tensors, and the header says 8" {
		t.Error(err)
	}
	if _, err := w.Write(make([]byte, 9)); err == nil ||
		err.Error() != "checkpoint: 9 bytes of tensors, and the header says 8" {
		t.Error(err)
	}
}

func TestReaderRefuses(t *testing.T) {
	const a = `"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}`
	tests := []struct {
		content []byte
		want    string // "" is accepted
	}{
		{raw(`{`+a+`}`, 2), ""},
		{raw(`{`+a+`}   `, 2), ""},
		{raw(`{}`, 0), ""},
		{raw(`{"b":{"data_offsets":[2,3],"shape":[],"dtype":"U8"},`+a+`}`, 3), ""},
		{nil, "it has only 0 bytes"},
		{raw(`{`+a+`}`, 1), "it is truncated: its tensors take 2 bytes, and it has 1"},
		{raw(`{`+a+`}`, 3), "it is too long: its tensors take 2 bytes, and it has 3"},
		{raw(`{`+a+`}`, 2)[:20], "it is truncated: its header takes 53 bytes, and it has 12"},
		{append(binary.LittleEndian.AppendUint64(nil, 1e8+1), "{}"...),
			"its header would be 100000001 bytes long, and at most 100000000 are allowed"},
		{raw(``, 0), "its header does not begin with {"},
		{raw(` {}`, 0), "its header does not begin with {"},
		{raw("{\"\xff\":1}", 0), "its header is not UTF-8"},
		{raw(`{`+a+`} x`, 2), `its header goes on after the last }, with "x"`},
		{raw(`{`+a+"}\n", 2), `its header goes on after the last }, with "\n"`},
		{raw(`{`+a+`,`+a+`}`, 2), `its header is wrong: key "a" occurs twice`},
		{raw(`{`+a, 2), "its header is wrong: EOF"},
		{raw(`{"a":[]}`, 2), "its header is wrong: [ in place of an object"},
		{raw(`{"__metadata__":{"k":1}}`, 0), `its header is wrong: metadata "k" is not a string`},
		{raw(`{`+a+`,"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3),
			`tensor "b" begins at byte 1, inside the tensor before it, which ends at 2`},
		{raw(`{`+a+`,"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}}`, 6),
			`there is a hole between bytes 2 and 4, before tensor "b"`},
		{raw(`{"b":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}}`, 2),
			`its header is wrong: tensor "b" of U8[3] takes 3 bytes, and its offsets say 2`},
		{raw(`{"b":{"dtype":"U9","shape":[3],"data_offsets":[0,2]}}`, 2),
			`its header is wrong: tensor "b" has the unknown type "U9"`},
		{raw(`{"b":{"dtype":"U8","shape":[3],"data_offsets":[2,0]}}`, 2),
			`its header is wrong: tensor "b" has the offsets [2 0]`},
		{raw(`{"b":{"dtype":"U8","shape":[2.0],"data_offsets":[0,2]}}`, 2),
			`its header is wrong: tensor "b" must have dtype, shape and data_offsets, and nothing else`},
		{raw(`{"b":{"dtype":"U8","shape":["2"],"data_offsets":[0,2]}}`, 2),
			`its header is wrong: tensor "b" must have dtype, shape and data_offsets, and nothing else`},
		{raw(`{"b":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}}`, 2),
			`its header is wrong: tensor "b" must have dtype, shape and data_offsets, and nothing else`},
		{raw(`{"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"x":1}}`, 2),
			`its header is wrong: tensor "b" must have dtype, shape and data_offsets, and nothing else`},
		{raw(`{"b":{"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 2),
			`its header is wrong: key "dtype" occurs twice`},
	}
	for _, tt := range tests {
		path := tempFile(t, tt.content)
		f, err := OpenFile(path)
		if err == nil {
			f.Close()
		}
		got, want := fmt.Sprint(err), "checkpoint: "+path+": not a valid safetensors file: "+tt.want
		if tt.want == "" {
			want = "<nil>"
		}
		if got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", tt.content, got, want)
		}
		if input := (*InputError)(nil); err != nil && !errors.As(err, &input) {
			t.Errorf("%v is no InputError", err)
		}
	}
}

// What the reader accepts covers the file exactly, and survives writing and reading again.
func FuzzScan(f *testing.F) {
	f.Add(raw(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 2))
	f.Add(raw(`{"__metadata__":{"k":"v"},"b":{"dtype":"F4","shape":[2,0],"data_offsets":[0,0]}} `, 0))
	f.Add(
		raw(
			`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"I64","shape":[1,2],"data_offsets":[4,20]}}`,
			20))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, metadata, data, err := scan(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		tensors, sum := []Tensor{}, int64(0)
		for _, e := range entries {
			tensors = append(tensors, e.Tensor)
			sum += e.Bytes()
		}
		if data+sum != int64(len(b)) {
			t.Fatalf("%d bytes of header and %d of tensors in a file of %d", data, sum, len(b))
		}
		var second bytes.Buffer
		w, err := NewWriter(&second, tensors, metadata)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(b[data:])
		entries2, metadata2, _, err := scan(bytes.NewReader(second.Bytes()), int64(second.Len()))
		if err != nil || !reflect.DeepEqual(entries, entries2) || len(metadata) > 0 &&
			!maps.Equal(metadata, metadata2) {
			t.Errorf("%v %v became %v %v, %v", entries, metadata, entries2, metadata2, err)
		}
	})
}

func TestFloats(t *testing.T) {
	var b bytes.Buffer
	f32 := make([]float32, chunk+3)
	for i := range f32 {
		f32[i] = float32(i) - 0.1
	}
	f64 := []float64{math.Pi, -math.MaxFloat64, 5e-324}
	if err := errors.Join(WriteFloats(&b, f32), WriteFloats(&b, f64)); err != nil {
		t.Fatal(err)
	}
	r := bytes.NewReader(b.Bytes())
	got := make([]float32, chunk+1)
	if err := ReadFloats(r, F32, 2, got); err != nil || !slices.Equal(got, f32[2:]) {
		t.Errorf("floats from element 2 on: %v", err)
	}
	wide := make([]float64, 3)
	if err := ReadFloats(io.NewSectionReader(r, int64(4*len(f32)), 24), F64, 0, wide); err != nil ||
		!slices.Equal(wide, f64) {
		t.Errorf("got %v, %v", wide, err)
	}
	if err := ReadFloats(r, F32, int64(r.Size()/4-1), got[:2]); !errors.Is(err, io.EOF) {
		t.Errorf("past the end: %v", err)
	}
	err := ReadFloats(r, I64, 0, got)
	if want := "checkpoint: elements of type I64 cannot be read as numbers; F64, F32, BF16 and F16 can"; err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestHalfAndBrain(t *testing.T) {
	tests := []struct {
		d    DType
		bits uint16
		want float64
	}{
		{F16, 0x3C00, 1}, {F16, 0xC000, -2}, {F16, 0x7BFF, 65504}, {F16, 0x0001, math.Ldexp(1, -24)},
		{F16, 0x0400, math.Ldexp(1, -14)},
		{F16, 0x7C00, math.Inf(1)}, {F16, 0xFC00, math.Inf(-1)}, {F16, 0, 0}, {F16, 0x3555, 0.333251953125},
		{BF16, 0x3F80, 1}, {BF16, 0xC049, -3.140625}, {BF16, 0xFF80, math.Inf(-1)},
	}
	for _, tt := range tests {
		var got [1]float64
		if err := ReadFloats(bytes.NewReader([]byte{byte(tt.bits), byte(tt.bits >> 8)}), tt.d, 0,
			got[:]); err != nil || got[0] != tt.want {
			t.Errorf("%s %#04x is %g, %v; want %g", tt.d, tt.bits, got[0], err, tt.want)
		}
	}
	if !math.IsNaN(half(0x7E00)) {
		t.Error("a NaN is lost")
	}
}
