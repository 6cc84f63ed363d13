package launch

import (
	"encoding/json"
	"fmt"
)

// Team is the launch that a run is part of. All its processes execute the whole run in step: each reads every batch,
// makes the same decisions, and knows the results of all ranks, but has devices only for its own ranks. After each step
// the processes exchange what only one of them sees, such as a rank's loss or a signal. Only the first process writes
// metrics and checkpoints and prints messages.
type Team struct {
	*Launch
	Peers Peers // nil if there is only one process
}

// Peers is the connection between the processes of a launch. All make the same calls in the same order. When one
// process fails, calls return its error.
type Peers interface {
	Gather(own []byte) ([][]byte, error) // sends a message of each process to the first
	// GatherInBackground is Gather for one other goroutine, concurrently with the other calls.
	GatherInBackground(own []byte) ([][]byte, error)
	Broadcast(b []byte) ([]byte, error)    // sends the first process's message to all
	Exchange(own []byte) ([][]byte, error) // sends a message of each process to all
	WaitingFor() string                    // process that a call waits for now, for people; "" for none
	Fail(err error)                        // makes all processes fail
	Done() <-chan struct{}                 // closed when a process has failed
	Err() error
	Close()
}

// IsFirst reports whether this process is the first, which writes files.
func (t *Team) IsFirst() bool { return t == nil || t.Process == 0 }

// Text broadcasts the first process's text.
func (t *Team) Text(s string) (string, error) {
	if t.Peers == nil {
		return s, nil
	}
	b, err := t.Peers.Broadcast([]byte(s))
	return string(b), err
}

// Texts exchanges one text of each process between all processes.
func (t *Team) Texts(own string) ([]string, error) {
	if t.Peers == nil {
		return []string{own}, nil
	}
	b, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	all, err := t.Peers.Exchange(b)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(all))
	for i, b := range all {
		if err := json.Unmarshal(b, &out[i]); err != nil {
			return nil, fmt.Errorf("process %d: %w", i, err)
		}
	}
	return out, nil
}
