//go:build cuda && linux

package gpu

import (
	"fmt"
	"os"
	"sync"
)

// registerEnv is the environment variable that, if it is 0, makes NCCL copy what it sends instead of using
// the arena in place.
const registerEnv = "PLANC_REGISTER"

// ncclReport collects what the run's first lines say about NCCL.
type ncclReport struct {
	fixed string // what makes collectives deterministic; "" if that was not requested

	mutex             sync.Mutex
	lines, registered int    // lines of all ranks; those with registered arenas
	why               string // reason that one is not registered
}

// count counts a line of a rank.
func (t *ncclReport) count(known bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.lines++
	if known {
		t.registered++
	}
}

// because records the first reason.
func (t *ncclReport) because(why string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.why == "" {
		t.why = why
	}
}

// registers reports whether NCCL is in use, supports registration, and is allowed to register.
func (m *machine) registers() bool {
	return m.nccl != nil && m.nccl.Registers() && os.Getenv(registerEnv) != "0"
}

// register registers the arena with the line's communicator, and reports whether that succeeded.
func (d *communication) register(m *machine, l *ncclLine) bool {
	switch {
	case !l.canRegister():
	case m.nccl.Registers() && os.Getenv(registerEnv) == "0":
		m.ncclReport.because(registerEnv + "=0")
	case !m.registers():
		m.ncclReport.because("needs NCCL 2.19 or newer")
	case d.ncclArena == 0: // the reason has been recorded
	default:
		known, err := l.comm.NCCL.Register(d.arena)
		if err != nil {
			m.ncclReport.because(err.Error())
		} else if !known {
			m.ncclReport.because("NCCL_LOCAL_REGISTER=0")
		}
		return known
	}
	return false
}

// ncclText says which NCCL connects the ranks, and how. It is empty if none does.
func (m *machine) ncclText() string {
	if m.nccl == nil {
		return ""
	}
	m.ncclReport.mutex.Lock()
	defer m.ncclReport.mutex.Unlock()
	t := &m.ncclReport
	text := fmt.Sprintf("NCCL %s: ", m.nccl.Version)
	switch {
	case t.lines == 0:
		text += "no communication"
	case t.registered == t.lines:
		text += fmt.Sprintf("arenas are registered with all %d communicators", t.lines)
	case t.registered == 0:
		text += "arenas are not registered (" + t.why + ")"
	default:
		text += fmt.Sprintf("arenas are registered with %d of %d communicators (%s)", t.registered, t.lines, t.why)
	}
	if t.fixed != "" {
		text += "; " + t.fixed
	}
	return text
}

// Libraries returns lines that name the NCCL that connects the ranks, what computes attention, which epilogues
// cuBLASLt refuses, and which measured choices GEMMs use.
func (m *machine) Libraries() (lines []string) {
	for _, line := range []string{m.ncclText(), m.attentionText, m.epilogues.text(m.blas.Version),
		m.choices.Report()} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
