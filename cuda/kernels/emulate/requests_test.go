package emulate

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// serve answers requests in this process with a function.
func serve(t *testing.T, launch func(*Request) error) *Machine {
	t.Helper()
	in, out := io.Pipe()
	replies, answers := io.Pipe()
	go func() {
		for {
			r, err := ReadRequest(in)
			if err == nil {
				err = r.Reply(answers, launch(r))
			}
			if err != nil {
				answers.CloseWithError(err)
				return
			}
		}
	}()
	t.Cleanup(func() { out.Close() })
	return &Machine{in: out, out: replies}
}

func TestRequestsAreReadAsWritten(t *testing.T) {
	x, y := &Buffer{Bytes: []byte{1, 2, 3, 4}, Skew: 2}, &Buffer{Bytes: []byte{5, 6}}
	want := Request{Kernel: "k_f32", Launch: Launch{Grid: [3]int{1, 2, 3}, Block: [3]int{32, 1, 1}},
		Buffers: []*Buffer{{Bytes: []byte{1, 2, 3, 4}, Skew: 2}, {Bytes: []byte{5, 6}}},
		Args: []Argument{{Buffers: []int{0}}, {Value: []byte{7, 0, 0, 0}}, {Table: true, Buffers: []int{1, 0}},
			{Value: make([]byte, 8)}, {Value: []byte{1, 2, 3}}}}
	m := serve(t, func(r *Request) error {
		if !reflect.DeepEqual(*r, want) {
			t.Errorf("got %+v, want %+v", *r, want)
		}
		r.Buffers[1].Bytes[0] = 9
		return nil
	})
	err := m.Launch("k_f32", want.Launch, x, 7, Table{y, x}, nil, []byte{1, 2, 3})
	if err != nil || y.Bytes[0] != 9 {
		t.Errorf("%v, %v", err, y.Bytes)
	}
	if err := serve(t, func(*Request) error { return errors.New("no") }).Launch("k", Launch{}); err == nil ||
		err.Error() != "no" {
		t.Errorf("%v, want no", err)
	}
}

// A damaged request is refused.
func TestDamagedRequests(t *testing.T) {
	for in, want := range map[string]string{
		"":                 "EOF",
		"\x01\x00\x00\x00": "request: unexpected EOF",
		"\xff\xff\xff\xff": "request: unexpected EOF",
		strings.Repeat("\x00", 32) + "\x01\x00\x00\x00b\x01\x00\x00\x00\x03\x00\x00\x00": "request: buffer 3 of 0",
		strings.Repeat("\x00", 32) + "\x01\x00\x00\x00":                                  "request: EOF",
	} {
		_, err := ReadRequest(strings.NewReader(in))
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}
