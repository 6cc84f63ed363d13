package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"gorgonia.org/cu"

	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
)

// serve answers launches of a kernel file's functions until the input ends.
func serve(in io.Reader, out io.Writer, dir, file string) error {
	g, err := open(dir)
	if err != nil {
		return err
	}
	for {
		r, err := emulate.ReadRequest(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		failed := g.answer(r, file)
		if err := g.release(); err != nil && failed == nil {
			failed = err
		}
		if err := r.Reply(out, failed); err != nil {
			return err
		}
	}
}

// guard is the number of bytes in front of and behind a buffer that a kernel must not change.
const guard = 256

// guarded returns a buffer's contents between guards, which are NaN in every type, and the buffer's offset.
func guarded(b *emulate.Buffer) (data []byte, at int) {
	at = guard + b.Skew
	data = bytes.Repeat([]byte{0xff}, at+len(b.Bytes)+guard)
	copy(data[at:], b.Bytes)
	return data, at
}

// answer runs a launch, and replaces the contents of the request's buffers by the results.
func (g *gpu) answer(r *emulate.Request, file string) error {
	f, err := g.function(file, r.Kernel)
	if err != nil {
		return err
	}
	at := make([]cu.DevicePtr, len(r.Buffers))
	for i, b := range r.Buffers {
		data, _ := guarded(b)
		at[i], err = g.put(data)
		if err != nil {
			return err
		}
	}
	args := make([][]byte, len(r.Args))
	for i, a := range r.Args {
		args[i], err = g.argument(a, r.Buffers, at)
		if err != nil {
			return err
		}
	}
	if err := waitForCopies(); err != nil {
		return err
	}
	if err := g.launch(f, kernels.Launch(r.Launch), args); err != nil {
		return err
	}
	for i, b := range r.Buffers {
		want, from := guarded(b)
		got := make([]byte, len(want))
		if err := g.get(got, at[i]); err != nil {
			return err
		}
		to := from + len(b.Bytes)
		if !bytes.Equal(got[:from], want[:from]) || !bytes.Equal(got[to:], want[to:]) {
			return fmt.Errorf("buffer %d was written beyond its ends", i)
		}
		copy(b.Bytes, got[from:to])
	}
	return nil
}

// argument returns an argument of a launch whose buffers are in memory.
func (g *gpu) argument(a emulate.Argument, buffers []*emulate.Buffer, at []cu.DevicePtr) ([]byte, error) {
	if a.Value != nil {
		return a.Value, nil
	}
	var list []byte
	for _, i := range a.Buffers {
		_, from := guarded(buffers[i])
		list = binary.NativeEndian.AppendUint64(list, uint64(at[i])+uint64(from))
	}
	if !a.Table {
		return list, nil
	}
	table, err := g.put(list)
	return binary.NativeEndian.AppendUint64(nil, uint64(table)), err
}
