package meet

import (
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// Hello is a process's description of itself. Of the program's Ranks, it runs Count starting at First.
type Hello struct {
	Process, Processes  int
	Ranks, First, Count int
	Host                string
	Program             string // digest; on the wire, the proof of knowing it
	Run                 string // identifies the launch
	Settings            string // settings that must be equal in all processes
}

// ranks returns the ranks' numbers for people.
func (h *Hello) ranks() string {
	switch h.Count {
	case 1:
		return fmt.Sprintf("rank %d", h.First)
	default:
		return fmt.Sprintf("ranks %d to %d", h.First, h.First+h.Count-1)
	}
}

// who identifies a process for people.
func (h *Hello) who() string { return h.ranks() + " on " + h.Host }

// public returns what other processes may know of a process.
func (h *Hello) public() Hello {
	return Hello{Process: h.Process, Processes: h.Processes, Ranks: h.Ranks, First: h.First, Count: h.Count,
		Host: h.Host}
}

// process returns the ranks of process i of the same launch.
func (h *Hello) process(i int) Hello {
	each := h.Ranks / h.Processes
	return Hello{Process: i, Processes: h.Processes, Ranks: h.Ranks, First: i * each, Count: each}
}

// otherProgram is the refusal that a caller with another program receives. It reveals nothing of the launch.
const otherProgram = "this process runs another program than process 0: start the same binary everywhere"

// refuses returns why a caller is not a process of the launch, for the lead's own log and for the caller; both are ""
// if it is one. proof belongs to the caller's connection.
func (h *Hello) refuses(c *Hello, proof string) (here, callerText string) {
	if !hmac.Equal([]byte(c.Program), []byte(proof)) {
		return fmt.Sprintf("the process of %s runs another program than this one, of digest %s", c.who(),
			h.Program), otherProgram
	}
	why := ""
	for _, d := range []struct{ what, caller, here string }{
		{"is compiled for %s ranks, but here there are %s", strconv.Itoa(c.Ranks), strconv.Itoa(h.Ranks)},
		{"is of a launch of %s processes, but here there are %s", strconv.Itoa(c.Processes), strconv.Itoa(h.Processes)},
		{"is of another launch, %q, but here it is %q", c.Run, h.Run},
		{"was started with other settings: %s, but here %s", quoted(c.Settings), quoted(h.Settings)},
	} {
		if d.here != d.caller {
			why = fmt.Sprintf(d.what, d.caller, d.here)
			break
		}
	}
	switch want := h.process(c.Process); {
	case why != "":
	case c.Process < 1 || c.Process >= h.Processes:
		why = fmt.Sprintf("says that it is process %d, but process 0 waits for processes 1 to %d", c.Process,
			h.Processes-1)
	case c.First != want.First || c.Count != want.Count:
		why = fmt.Sprintf("says that it is process %d, which has %s", c.Process, want.ranks())
	default:
		return "", ""
	}
	why = "the process of " + c.who() + " " + why
	return why, why
}

// readHello reads a caller's first frame.
func readHello(from io.Reader) (h Hello, err error) {
	k, b, err := readFrame(from, helloLimit)
	if err != nil {
		return h, err
	}
	if k != hello {
		return h, errUnknownPeer
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return h, errUnknownPeer
	}
	h.Host = quoted(h.Host)
	return h, nil
}

// readKnown decodes the hellos of all processes, which the lead has sent.
func readKnown(b []byte, me *Hello) ([]Hello, error) {
	var all []Hello
	if err := json.Unmarshal(b, &all); err != nil || len(all) != me.Processes {
		return nil, errUnknownPeer
	}
	for i := range all {
		h, want := &all[i], me.process(i)
		if h.Process != i || h.Processes != want.Processes || h.Ranks != want.Ranks || h.First != want.First ||
			h.Count != want.Count {
			return nil, errUnknownPeer
		}
		h.Host = quoted(h.Host)
	}
	return all, nil
}
