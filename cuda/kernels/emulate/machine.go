package emulate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"
)

// Machine is a running process with compiled kernels.
type Machine struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	stderr bytes.Buffer
}

// Buffer is device memory: its contents before a launch, and afterwards. It starts Skew bytes after a
// multiple of 16.
type Buffer struct {
	Bytes []byte
	Skew  int
}

// Table is an argument: memory that holds the addresses of buffers.
type Table []*Buffer

// Launch is the geometry of a launch: a grid of blocks of threads.
type Launch struct{ Grid, Block [3]int }

func start(path string, args ...string) (*Machine, error) {
	m := &Machine{cmd: exec.Command(path, args...)}
	m.cmd.Stderr = &m.stderr
	var err error
	m.in, err = m.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	m.out, err = m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return m, m.cmd.Start()
}

// Close ends the process.
func (m *Machine) Close() error {
	m.in.Close()
	return m.cmd.Wait()
}

// ErrCrashed is the error of a kernel that ended the process with a trap.
var ErrCrashed = errors.New("the kernel crashed: an index beyond an array, or a misaligned access")

// ErrEndless is the error of a kernel that did not end in time: it waits for ever, or the machine is too
// busy.
var ErrEndless = errors.New("the kernel has not ended in the time that it has")

// timeLimit is how long a kernel may run.
var timeLimit = time.Minute

// Launch runs a kernel. Arguments are int, int32, uint32, int64, uint64, float32, float64, *Buffer, Table,
// []byte for a struct by value, and nil for a null pointer. An int is a 32-bit parameter. Errors other than
// ErrCrashed and ErrEndless are faults that the machine detected.
func (m *Machine) Launch(kernel string, l Launch, args ...any) error {
	r := request{buffers: map[*Buffer]int{}}
	for _, a := range args {
		r.argument(a)
	}
	var b bytes.Buffer
	put := func(v any) { binary.Write(&b, binary.LittleEndian, v) }
	put(uint32(len(kernel)))
	b.WriteString(kernel)
	for _, n := range append(l.Grid[:], l.Block[:]...) {
		put(uint32(max(n, 1)))
	}
	put(uint32(len(r.order)))
	for _, x := range r.order {
		put(uint32(x.Skew))
		put(uint64(len(x.Bytes)))
		b.Write(x.Bytes)
	}
	put(uint32(len(args)))
	b.Write(r.args.Bytes())
	var late atomic.Bool
	watch := time.AfterFunc(timeLimit, func() {
		late.Store(true)
		m.cmd.Process.Kill()
	})
	defer watch.Stop()
	err := m.ask(b.Bytes(), r.order)
	if errors.Is(err, ErrCrashed) && late.Load() {
		return ErrEndless
	}
	return err
}

// ask sends a request and reads the results.
func (m *Machine) ask(request []byte, buffers []*Buffer) error {
	if _, err := m.in.Write(request); err != nil {
		return fmt.Errorf("%w (%v)", ErrCrashed, err)
	}
	return m.reply(buffers)
}

// reply reads the results of a launch.
func (m *Machine) reply(buffers []*Buffer) error {
	var n uint32
	if err := binary.Read(m.out, binary.LittleEndian, &n); err != nil {
		return fmt.Errorf("%w %s", ErrCrashed, strings.TrimSpace(m.stderr.String()))
	}
	why := make([]byte, n)
	if _, err := io.ReadFull(m.out, why); err != nil {
		return ErrCrashed
	}
	if n > 0 {
		return errors.New(string(why))
	}
	for _, x := range buffers {
		if _, err := io.ReadFull(m.out, x.Bytes); err != nil {
			return ErrCrashed
		}
	}
	return nil
}

// request is the encoded arguments of a launch.
type request struct {
	buffers map[*Buffer]int
	order   []*Buffer
	args    bytes.Buffer
}

func (r *request) argument(a any) {
	switch a := a.(type) {
	case *Buffer:
		r.head('b', 1)
		r.index(a)
	case Table:
		r.head('t', len(a))
		for _, x := range a {
			r.index(x)
		}
	case []byte: // a struct by value
		r.head('v', len(a))
		r.args.Write(a)
	case nil:
		r.value(uint64(0), 8)
	case int:
		r.value(int32(a), 4)
	case int32, uint32:
		r.value(a, 4)
	case float32:
		r.value(math.Float32bits(a), 4)
	case int64, uint64, float64:
		r.value(a, 8)
	default:
		panic(fmt.Sprintf("emulate: no argument is a %T", a))
	}
}

func (r *request) head(kind byte, n int) {
	r.args.WriteByte(kind)
	binary.Write(&r.args, binary.LittleEndian, uint32(n))
}

func (r *request) value(v any, size int) {
	r.head('v', size)
	binary.Write(&r.args, binary.LittleEndian, v)
}

func (r *request) index(x *Buffer) {
	i, ok := r.buffers[x]
	if !ok {
		i = len(r.order)
		r.buffers[x], r.order = i, append(r.order, x)
	}
	binary.Write(&r.args, binary.LittleEndian, uint32(i))
}
