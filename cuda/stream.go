//go:build cuda && linux

package cuda

/*
#include "driver.h"
*/
import "C"

// Stream is a queue of work on a device. The work runs in order.
type Stream struct {
	s C.CUstream

	// EarlyLaunch lets a kernel begin before the previous one has ended, if that was launched by [Stream.Launch] and
	// nothing was enqueued between them. Every kernel must then wait for the previous one before it accesses memory.
	// See [Device.CanLaunchEarly].
	EarlyLaunch bool

	afterKernel bool // the last thing enqueued is a kernel of Launch
}

// handle returns the driver's handle, for enqueueing anything but a kernel of Launch.
func (s *Stream) handle() C.CUstream {
	s.afterKernel = false
	return s.s
}

// Priorities of streams. The driver clamps a number to those that the GPU has.
const (
	NormalPriority = 0
	HighPriority   = -100
)

// NewStream creates a stream of the bound context that does not wait for others. Of two streams, the one
// with the lower priority number goes first: its blocks take the multiprocessors that become free. Work in
// progress is not interrupted.
func NewStream(priority int) (*Stream, error) {
	s := &Stream{}
	err := driverError(C.planc_cuStreamCreateWithPriority(&s.s, C.planc_stream_non_blocking, C.int(priority)),
		"cuStreamCreateWithPriority", "priority %d", priority)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Record marks the present end of the stream's queue in e.
func (s *Stream) Record(e *Event) error {
	return driverError(C.planc_cuEventRecord(e.e, s.handle()), "cuEventRecord", "")
}

// Wait makes later work on the stream wait for what e marks. The caller does not wait.
func (s *Stream) Wait(e *Event) error {
	return driverError(C.planc_cuStreamWaitEvent(s.handle(), e.e, 0), "cuStreamWaitEvent", "")
}

// Done reports whether all enqueued work has finished.
func (s *Stream) Done() (bool, error) {
	r := C.planc_cuStreamQuery(s.s)
	if r == C.planc_not_ready {
		return false, nil
	}
	err := driverError(r, "cuStreamQuery", "")
	return err == nil, err
}

// Synchronize waits until all enqueued work has finished.
func (s *Stream) Synchronize() error {
	return driverError(C.planc_cuStreamSynchronize(s.s), "cuStreamSynchronize", "")
}

// Close closes the stream. Enqueued work still runs.
func (s *Stream) Close() error {
	return driverError(C.planc_cuStreamDestroy_v2(s.s), "cuStreamDestroy_v2", "")
}

// Event marks a position in a stream's queue.
type Event struct{ e C.CUevent }

// NewEvent creates an event. One that is not timed costs less, and serves only for ordering.
func NewEvent(timed bool) (*Event, error) {
	flags := C.uint(C.planc_event_no_timing)
	if timed {
		flags = 0
	}
	e := &Event{}
	if err := driverError(C.planc_cuEventCreate(&e.e, flags), "cuEventCreate", ""); err != nil {
		return nil, err
	}
	return e, nil
}

// Synchronize waits for the work that the event marks.
func (e *Event) Synchronize() error {
	return driverError(C.planc_cuEventSynchronize(e.e), "cuEventSynchronize", "")
}

// Since returns the seconds between another timed event and this one. Both must have passed.
func (e *Event) Since(from *Event) (float64, error) {
	var ms C.float
	err := driverError(C.planc_cuEventElapsedTime(&ms, from.e, e.e), "cuEventElapsedTime", "")
	return float64(ms) / 1000, err
}

// Close releases the event.
func (e *Event) Close() error {
	return driverError(C.planc_cuEventDestroy_v2(e.e), "cuEventDestroy_v2", "")
}
