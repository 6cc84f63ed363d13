package meet

import (
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// Hello is what a process says of itself. Ranks are those of the program, of which it runs Count from First on.
type Hello struct {
	Process, Processes  int
	Ranks, First, Count int
	Host                string
	Program             string // digest; to another process, the proof of knowing it
	Run                 string // what tells a launch from others
	Settings            string // with which it runs, as far as all have the same
}

// ranks names them.
func (h *Hello) ranks() string {
	switch h.Count {
	case 1:
		return fmt.Sprintf("rank %d", h.First)
	default:
		return fmt.Sprintf("ranks %d to %d", h.First, h.First+h.Count-1)
	}
}

// who names a process for people.
func (h *Hello) who() string { return h.ranks() + " on " + h.Host }

// public is what other processes are told of one.
func (h *Hello) public() Hello {
	return Hello{Process: h.Process, Processes: h.Processes, Ranks: h.Ranks, First: h.First, Count: h.Count,
		Host: h.Host}
}

// of returns what process i of the same launch says of its ranks.
func (h *Hello) of(i int) Hello {
	each := h.Ranks / h.Processes
	return Hello{Process: i, Processes: h.Processes, Ranks: h.Ranks, First: i * each, Count: each}
}

// others says how a caller that runs another program is refused: it learns nothing of the launch.
const others = "this process runs another program than process 0: start the same binary everywhere"

// refuses returns why a caller is no process of the launch, for the lead's own log and for the caller; both are "" if
// it is one. proof is that of the caller's connection.
func (h *Hello) refuses(c *Hello, proof string) (here, there string) {
	if !hmac.Equal([]byte(c.Program), []byte(proof)) {
		return fmt.Sprintf("the process of %s runs another program than this one, of digest %s", c.who(),
			h.Program), others
	}
	why := ""
	for _, d := range []struct{ what, there, here string }{
		{"is compiled for %s ranks, and here there are %s", strconv.Itoa(c.Ranks), strconv.Itoa(h.Ranks)},
		{"is of a launch of %s processes, and here there are %s", strconv.Itoa(c.Processes), strconv.Itoa(h.Processes)},
		{"is of another launch, %q, and here it is %q", c.Run, h.Run},
		{"was started with other settings: %s, and here %s", quoted(c.Settings), quoted(h.Settings)},
	} {
		if d.here != d.there {
			why = fmt.Sprintf(d.what, d.there, d.here)
			break
		}
	}
	switch want := h.of(c.Process); {
	case why != "":
	case c.Process < 1 || c.Process >= h.Processes:
		why = fmt.Sprintf("says that it is process %d, and process 0 waits for processes 1 to %d", c.Process,
			h.Processes-1)
	case c.First != want.First || c.Count != want.Count:
		why = fmt.Sprintf("says that it is process %d, which has %s", c.Process, want.ranks())
	default:
		return "", ""
	}
	why = "the process of " + c.who() + " " + why
	return why, why
}

// readHello reads the frame with which a caller begins.
func readHello(from io.Reader) (h Hello, err error) {
	k, b, err := readFrame(from, helloLimit)
	if err != nil {
		return h, err
	}
	if k != hello {
		return h, errStranger
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return h, errStranger
	}
	h.Host = quoted(h.Host)
	return h, nil
}

// readKnown reads the hellos of all processes of a launch from what the lead has sent.
func readKnown(b []byte, me *Hello) ([]Hello, error) {
	var all []Hello
	if err := json.Unmarshal(b, &all); err != nil || len(all) != me.Processes {
		return nil, errStranger
	}
	for i := range all {
		h, want := &all[i], me.of(i)
		if h.Process != i || h.Processes != want.Processes || h.Ranks != want.Ranks || h.First != want.First ||
			h.Count != want.Count {
			return nil, errStranger
		}
		h.Host = quoted(h.Host)
	}
	return all, nil
}
