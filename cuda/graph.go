//go:build cuda && linux

package cuda

/*
#include "driver.h"
*/
import "C"

import "errors"

// Graph is recorded work that one call enqueues.
type Graph struct{ x C.CUgraphExec }

// Capture records the work that f enqueues on the stream, and on streams that wait for its events, instead
// of running it. These streams must have been joined to the stream by events. Addresses and arguments are
// fixed at the time of the capture.
func (s *Stream) Capture(f func() error) (*Graph, error) {
	if err := driverError(C.planc_cuStreamBeginCapture_v2(s.handle(), C.planc_capture_thread_local), "cuStreamBeginCapture_v2",
		""); err != nil {
		return nil, err
	}
	template, err := s.recorded(f)
	if template != nil {
		defer C.planc_cuGraphDestroy(template)
	}
	if err != nil {
		return nil, err
	}
	g := &Graph{}
	flags := C.ulonglong(0)
	if theDriver.number >= nodePriorities {
		flags = C.planc_graph_node_priorities
	}
	if err := driverError(C.planc_cuGraphInstantiateWithFlags(&g.x, template, flags), "cuGraphInstantiateWithFlags",
		""); err != nil {
		return nil, err
	}
	return g, nil
}

// nodePriorities is the first driver that runs a graph's work with the priorities of the streams on which it
// was captured, and not of the one on which the graph is launched: 11.7.
const nodePriorities = 11070

// recorded calls f and ends the capture even if f panics; otherwise the stream and the thread would stay
// unusable.
func (s *Stream) recorded(f func() error) (template C.CUgraph, err error) {
	done := false
	defer func() {
		r := C.planc_cuStreamEndCapture(s.handle(), &template)
		if done {
			err = errors.Join(err, driverError(r, "cuStreamEndCapture", ""))
		} else if template != nil {
			C.planc_cuGraphDestroy(template)
		}
	}()
	err = f()
	done = true
	return template, err
}

// Replay enqueues a recorded graph on the stream.
func (s *Stream) Replay(g *Graph) error {
	return driverError(C.planc_cuGraphLaunch(g.x, s.handle()), "cuGraphLaunch", "")
}

// Close releases the graph. No stream may still run it.
func (g *Graph) Close() error {
	return driverError(C.planc_cuGraphExecDestroy(g.x), "cuGraphExecDestroy", "")
}
