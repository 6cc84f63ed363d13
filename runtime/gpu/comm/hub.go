//go:build cuda && linux

package comm

import (
	"fmt"
	"sync"

	"github.com/planc-dev/planc/cuda"
)

// hub connects the ranks of a line that share a GPU. Each rank publishes the addresses of its operands and
// the event that marks them ready, and the kernels of each rank then read the operands of all. The host
// threads wait for each other, but not for the device.
type hub struct {
	mutex   sync.Mutex
	arrived int
	gate    chan struct{} // closed when all have arrived
	calls   []call        // by member
	mail    map[[2]int]chan letter
}

// call is a member's part in a collective.
type call struct {
	to, from    cuda.Pointer
	sends       map[int]cuda.Pointer // by peer
	ready, done *cuda.Event
}

// letter is a message from one member to another.
type letter struct {
	from  cuda.Pointer
	bytes int
	sent  *cuda.Event
	taken chan *cuda.Event // event of the receiver, sent when its copy is enqueued
}

// Hubs are the meeting points of the ranks of this process that share a GPU, one for each group of a line.
type Hubs struct {
	mutex sync.Mutex
	all   map[string]*hub
}

// find returns the hub of a line's group.
func (h *Hubs) find(line string, ranks []int) *hub {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.all == nil {
		h.all = map[string]*hub{}
	}
	key := fmt.Sprint(line, ranks)
	if h.all[key] == nil {
		h.all[key] = &hub{gate: make(chan struct{}), calls: make([]call, len(ranks)), mail: map[[2]int]chan letter{}}
	}
	return h.all[key]
}

// meet returns when all members have called it.
func (h *hub) meet(failed <-chan struct{}) error {
	h.mutex.Lock()
	gate := h.gate
	h.arrived++
	if h.arrived == len(h.calls) {
		h.arrived, h.gate = 0, make(chan struct{})
		close(gate)
	}
	h.mutex.Unlock()
	select {
	case <-gate:
		return nil
	case <-failed:
		return ErrPeerFailed
	}
}

// mailbox returns the queue of messages from one member to another.
func (h *hub) mailbox(from, to int) chan letter {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	key := [2]int{from, to}
	if h.mail[key] == nil {
		h.mail[key] = make(chan letter, 1<<12)
	}
	return h.mail[key]
}
