//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// line is a stream with what its calls share.
type line struct {
	stream  *cuda.Stream
	scratch cuda.Memory
	grown   []cuda.Memory // outgrown scratch, which calls on the stream and captured graphs may still use
	mark    *cuda.Event   // of the last thing that another line waits for
}

func newLine() (*line, error) {
	s, err := cuda.NewStream(0)
	if err != nil {
		return nil, err
	}
	e, err := cuda.NewEvent(false)
	return &line{stream: s, mark: e}, err
}

// room is scratch of at least so many bytes.
func (l *line) room(bytes int) cuda.Memory {
	if int64(bytes) > l.scratch.Bytes {
		m, err := cuda.Alloc(int64(max(bytes, 1<<16)))
		rt.Check(err)
		if l.scratch.Bytes > 0 {
			l.grown = append(l.grown, l.scratch)
		}
		l.scratch = m
	}
	return l.scratch.At(0, int64(bytes))
}

// after makes what is put on the line from now on wait for what is on another now.
func (l *line) after(other *line) {
	rt.Check(other.stream.Record(other.mark))
	rt.Check(l.stream.Wait(other.mark))
}
