//go:build cuda && linux

package gpu

import (
	"fmt"
	"os"
	"sync"

	"github.com/planc-dev/planc/cuda"
)

// registers is the variable of the environment that, with 0, has NCCL copy what it sends as if it could not use the
// arena in place.
const registers = "PLANC_REGISTER"

// told is what is said of NCCL when all ranks are connected.
type told struct {
	fixed string // what makes its collectives deterministic; "" where nobody asked

	mutex        sync.Mutex
	lines, known int    // of ranks, on which the arena may be registered, and those on which it is
	why          string // of one to which it is not
}

// count counts a line of a rank.
func (t *told) count(known bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.lines++
	if known {
		t.known++
	}
}

// because keeps the first reason.
func (t *told) because(why string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.why == "" {
		t.why = why
	}
}

// arenaMemory takes memory from NCCL, where it can then use it in place. What NCCL has none of, or refuses, the driver
// has.
func (d *device) arenaMemory(m *machine, bytes int) (cuda.Memory, error) {
	if !m.registers() {
		return d.take(bytes)
	}
	a, err := m.nccl.Alloc(int64(bytes))
	if err != nil {
		m.told.because(err.Error())
		return d.take(bytes)
	}
	d.ncclArena = a.Bytes
	d.atClose(func() error { return m.nccl.Free(a) })
	return a, nil
}

// registers tells whether NCCL is there, knows how to, and may.
func (m *machine) registers() bool {
	return m.nccl != nil && m.nccl.Registers() && os.Getenv(registers) != "0"
}

// register tells the line's communicator of the arena, and is whether it has.
func (d *device) register(m *machine, l *member) bool {
	switch {
	case !l.registrable():
	case m.nccl.Registers() && os.Getenv(registers) == "0":
		m.told.because(registers + "=0")
	case !m.registers():
		m.told.because("it came with 2.19")
	case d.ncclArena == 0: // the reason is told
	default:
		known, err := l.comm.nccl.Register(d.arena)
		if err != nil {
			m.told.because(err.Error())
		} else if !known {
			m.told.because("NCCL_LOCAL_REGISTER=0")
		}
		return known
	}
	return false
}

// joined says which NCCL joins the ranks, and how; "" where none does.
func (m *machine) joined() string {
	if m.nccl == nil {
		return ""
	}
	m.told.mutex.Lock()
	defer m.told.mutex.Unlock()
	t := &m.told
	text := fmt.Sprintf("NCCL %s: ", m.nccl.Version)
	switch {
	case t.lines == 0:
		text += "nothing to send"
	case t.known == t.lines:
		text += fmt.Sprintf("arenas are registered with all %d communicators", t.lines)
	case t.known == 0:
		text += "no memory is registered (" + t.why + ")"
	default:
		text += fmt.Sprintf("arenas are registered with %d of %d communicators (%s)", t.known, t.lines, t.why)
	}
	if t.fixed != "" {
		text += "; " + t.fixed
	}
	return text
}

// Found says which NCCL joins the ranks and what computes attention, where there is any.
func (m *machine) Found() (lines []string) {
	for _, line := range []string{m.joined(), m.attend} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
