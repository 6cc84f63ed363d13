//go:build cuda && linux

package cuda

/*
#include "driver.h"
*/
import "C"

import "errors"

// Graph is work that was recorded once and is put on a stream by one call.
type Graph struct{ x C.CUgraphExec }

// Capture records what f puts on the stream, and on streams that wait for events of it, instead of running it. All of
// them must have been joined to the stream again by events. The addresses and arguments are those of now, at each
// launch.
func (s *Stream) Capture(f func() error) (*Graph, error) {
	if err := failure(C.planc_cuStreamBeginCapture_v2(s.s, C.planc_capture_thread_local), "cuStreamBeginCapture_v2",
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
	if err := failure(C.planc_cuGraphInstantiateWithFlags(&g.x, template, 0), "cuGraphInstantiateWithFlags",
		""); err != nil {
		return nil, err
	}
	return g, nil
}

// recorded calls f and ends the capture, also where f panics: else the stream, and the thread, stayed unusable.
func (s *Stream) recorded(f func() error) (template C.CUgraph, err error) {
	done := false
	defer func() {
		r := C.planc_cuStreamEndCapture(s.s, &template)
		if done {
			err = errors.Join(err, failure(r, "cuStreamEndCapture", ""))
		} else if template != nil {
			C.planc_cuGraphDestroy(template)
		}
	}()
	err = f()
	done = true
	return template, err
}

// Replay puts a recorded graph on the stream.
func (s *Stream) Replay(g *Graph) error {
	return failure(C.planc_cuGraphLaunch(g.x, s.s), "cuGraphLaunch", "")
}

// Close ends the graph, which no stream runs any more.
func (g *Graph) Close() error {
	return failure(C.planc_cuGraphExecDestroy(g.x), "cuGraphExecDestroy", "")
}
