//go:build cuda && linux

package cuda

/*
#include "driver.h"
*/
import "C"

// Stream is a line of work on a device: what is put on it runs in order.
type Stream struct{ s C.CUstream }

// NewStream makes a stream of the bound context that waits for no other. Of two, the one of lower priority number goes
// first.
func NewStream(priority int) (*Stream, error) {
	s := &Stream{}
	err := failure(C.planc_cuStreamCreateWithPriority(&s.s, C.planc_stream_non_blocking, C.int(priority)),
		"cuStreamCreateWithPriority", "priority %d", priority)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Record marks in e what was put on the stream so far.
func (s *Stream) Record(e *Event) error {
	return failure(C.planc_cuEventRecord(e.e, s.s), "cuEventRecord", "")
}

// Wait makes what is put on the stream from now on wait for what e marks. The caller does not wait.
func (s *Stream) Wait(e *Event) error {
	return failure(C.planc_cuStreamWaitEvent(s.s, e.e, 0), "cuStreamWaitEvent", "")
}

// Done reports whether all that was put on the stream has finished.
func (s *Stream) Done() (bool, error) {
	r := C.planc_cuStreamQuery(s.s)
	if r == C.planc_not_ready {
		return false, nil
	}
	err := failure(r, "cuStreamQuery", "")
	return err == nil, err
}

// Synchronize waits until all that was put on the stream has finished.
func (s *Stream) Synchronize() error {
	return failure(C.planc_cuStreamSynchronize(s.s), "cuStreamSynchronize", "")
}

// Close ends the stream; what is on it still runs.
func (s *Stream) Close() error {
	return failure(C.planc_cuStreamDestroy_v2(s.s), "cuStreamDestroy_v2", "")
}

// Event marks a place in a stream.
type Event struct{ e C.CUevent }

// NewEvent makes an event. One that is not timed costs less, and only orders.
func NewEvent(timed bool) (*Event, error) {
	flags := C.uint(C.planc_event_no_timing)
	if timed {
		flags = 0
	}
	e := &Event{}
	if err := failure(C.planc_cuEventCreate(&e.e, flags), "cuEventCreate", ""); err != nil {
		return nil, err
	}
	return e, nil
}

// Synchronize waits for what the event marks.
func (e *Event) Synchronize() error {
	return failure(C.planc_cuEventSynchronize(e.e), "cuEventSynchronize", "")
}

// Since is how many seconds lie between another timed event and this one, both past.
func (e *Event) Since(from *Event) (float64, error) {
	var ms C.float
	err := failure(C.planc_cuEventElapsedTime(&ms, from.e, e.e), "cuEventElapsedTime", "")
	return float64(ms) / 1000, err
}

// Close ends the event.
func (e *Event) Close() error {
	return failure(C.planc_cuEventDestroy_v2(e.e), "cuEventDestroy_v2", "")
}
