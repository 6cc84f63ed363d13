package emulate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Request is a launch as a server reads it.
type Request struct {
	Kernel string
	Launch
	Buffers []*Buffer
	Args    []Argument
}

// Argument is an argument of a request: a value, the address of a buffer, or memory that holds addresses of buffers.
type Argument struct {
	Value   []byte // of a number or a struct; nil if the argument is an address
	Table   bool   // memory that holds the addresses of Buffers
	Buffers []int  // indices; one unless Table is set
}

// Connect starts a process that serves launches as the programs of [Build] do: it reads requests from its standard
// input and answers on its standard output. See [ReadRequest].
func Connect(command []string) (*Machine, error) { return start(command[0], command[1:]...) }

// ReadRequest reads the next request of a [Machine]. It returns io.EOF if there is none.
func ReadRequest(in io.Reader) (*Request, error) {
	r := &requestReader{in: in}
	first := r.number()
	if errors.Is(r.err, io.EOF) {
		return nil, io.EOF
	}
	out := &Request{Kernel: string(r.bytes(uint64(first)))}
	for i := range 3 {
		out.Grid[i] = int(r.number())
	}
	for i := range 3 {
		out.Block[i] = int(r.number())
	}
	for n := r.number(); n > 0 && r.err == nil; n-- {
		skew := int(r.number())
		out.Buffers = append(out.Buffers, &Buffer{Skew: skew, Bytes: r.bytes(r.long())})
	}
	for n := r.number(); n > 0 && r.err == nil; n-- {
		out.Args = append(out.Args, r.argument(len(out.Buffers)))
	}
	if r.err != nil {
		return nil, fmt.Errorf("request: %w", r.err)
	}
	return out, nil
}

// Reply answers a request: with why the launch failed, or with the contents of its buffers.
func (r *Request) Reply(out io.Writer, failed error) error {
	why := ""
	if failed != nil {
		why = failed.Error()
	}
	if err := binary.Write(out, binary.LittleEndian, uint32(len(why))); err != nil {
		return err
	}
	if _, err := io.WriteString(out, why); err != nil || failed != nil {
		return err
	}
	for _, b := range r.Buffers {
		if _, err := out.Write(b.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// requestReader reads the parts of a request. After an error it returns zeros.
type requestReader struct {
	in  io.Reader
	err error
}

func (r *requestReader) read(p []byte) {
	if r.err == nil {
		_, r.err = io.ReadFull(r.in, p)
	}
}

func (r *requestReader) number() uint32 {
	var b [4]byte
	r.read(b[:])
	return binary.LittleEndian.Uint32(b[:])
}

func (r *requestReader) long() uint64 {
	var b [8]byte
	r.read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// bytes reads n bytes. Memory is allocated as they arrive, so that a damaged length is an error.
func (r *requestReader) bytes(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(r.in, int64(n)))
	if err == nil && uint64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	r.err = err
	return b
}

// argument reads an argument of a request with some buffers.
func (r *requestReader) argument(buffers int) (a Argument) {
	var kind [1]byte
	r.read(kind[:])
	n := r.number()
	if kind[0] == 'v' {
		a.Value = r.bytes(uint64(n))
		return a
	}
	a.Table = kind[0] == 't'
	for ; n > 0 && r.err == nil; n-- {
		i := int(r.number())
		if r.err == nil && i >= buffers {
			r.err = fmt.Errorf("buffer %d of %d", i, buffers)
		}
		a.Buffers = append(a.Buffers, i)
	}
	return a
}
