//go:build cuda && linux

package cuda

/*
#include <stdlib.h>
#include <string.h>
#include "nccl.h"
#include "open.h"

static ncclResult_t planc_join(ncclComm_t *comm, int ranks, const char *id, int rank, int ctas) {
	struct planc_nccl_config config = planc_nccl_configure(ctas);
	ncclUniqueId by_value;
	memcpy(by_value.internal, id, sizeof by_value.internal);
	return planc_ncclCommInitRankConfig(comm, ranks, by_value, rank, (ncclConfig_t *)&config);
}

static ncclResult_t planc_split(ncclComm_t comm, int color, int key, ncclComm_t *part, int ctas) {
	struct planc_nccl_config config = planc_nccl_configure(ctas);
	return planc_ncclCommSplit(comm, color, key, part, (ncclConfig_t *)&config);
}
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"
)

// NCCL is NVIDIA's open library of collectives.
type NCCL struct {
	Path    string
	Version string // such as 2.27.3
}

var openNCCL = sync.OnceValues(func() (*NCCL, error) { return loadNCCL(nil) })

// OpenNCCL opens NCCL from the system's library path. It fails with a [*MissingError] or an [*OldError].
func OpenNCCL() (*NCCL, error) { return openNCCL() }

// runtimeConnect is an environment variable of NCCL. By default, NCCL 2.22 and later connects the ranks of a
// communicator for an algorithm at its first use, which may be inside a step; 0 makes it connect when the communicator
// is created.
const runtimeConnect = "NCCL_RUNTIME_CONNECT"

// launchOrder is an environment variable of NCCL 2.26 and later. If it is 1, kernels of several communicators on one
// GPU start in the order of the host's calls, so that two ranks cannot start them in different orders and wait for each
// other. With a driver before orderingDriver, those in a graph run one after the other instead (getImplicitOrder in
// NCCL's enqueue.cc). Then two pipeline stages that send to each other would wait forever, so it is not set.
const (
	launchOrder    = "NCCL_LAUNCH_ORDER_IMPLICIT"
	orderingDriver = 12090
)

func loadNCCL(folders []string) (*NCCL, error) {
	setDefault(runtimeConnect, "0")
	path, err := load(LibraryNamed("NCCL"), folders, "ncclGetVersion", func(l unsafe.Pointer) *C.char {
		return C.planc_bind_nccl(l)
	})
	if err != nil {
		return nil, err
	}
	var v C.int
	if err := ncclError(nil, C.planc_ncclGetVersion(&v), "ncclGetVersion", ""); err != nil {
		return nil, err
	}
	return &NCCL{Path: path, Version: fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100)}, nil
}

// ncclError returns the error of a call of NCCL, and nil if the call succeeded or is still in progress.
func ncclError(c *Comm, r C.ncclResult_t, call, what string, args ...any) error {
	switch r {
	case C.planc_nccl_ok, C.planc_nccl_in_progress:
		return nil
	case ended:
		return ErrEnded
	}
	e := &Error{Call: call, What: fmt.Sprintf(what, args...), Code: int(r), Name: "ncclResult_t",
		Text: C.GoString(C.planc_ncclGetErrorString(r))}
	if c != nil {
		c.call(func() C.ncclResult_t {
			e.Hint = C.GoString(C.planc_ncclGetLastError(c.c))
			return C.planc_nccl_ok
		})
	}
	return e
}

// UniqueID is the identity by which ranks find each other. One rank creates it and sends it to the others.
type UniqueID [128]byte

// NewID creates an identity. The calling process becomes the place where the others connect.
func (n *NCCL) NewID() (id UniqueID, err error) {
	err = ncclError(nil, C.planc_ncclGetUniqueId((*C.ncclUniqueId)(unsafe.Pointer(&id))), "ncclGetUniqueId", "")
	return id, err // evaluated after the call, which fills in id
}

// Comm is a rank's communicator with a group of ranks. One goroutine uses it; [Comm.Failed] and
// [Comm.Abort] may be called by any.
type Comm struct {
	Rank, Ranks int
	Name        string // what it connects, for messages
	// time limit for a collective to connect its ranks at first use; afterwards it runs asynchronously on the
	// stream
	Patience time.Duration
	c        C.ncclComm_t

	mutex    sync.Mutex // held while NCCL is called with c, except to end it
	ended    bool       // c is or will be invalid
	grouped  bool       // calls are deferred
	deferred []deferred // to the end of the group
	last     deferred   // the last call, guarded by mutex

	registered []unsafe.Pointer // NCCL's handles of registered memory
}

// ErrEnded is the error of calls on a communicator that was aborted or closed.
var ErrEnded = errors.New("cuda: the communicator was closed")

// ended is call's code for ErrEnded.
const ended C.ncclResult_t = -1

// call calls NCCL with the communicator, unless it was ended.
func (c *Comm) call(f func() C.ncclResult_t) C.ncclResult_t {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.ended {
		return ended
	}
	return f()
}

// end makes all later calls fail with [ErrEnded], after a running one has returned. It returns false if
// they already do.
func (c *Comm) end() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	before := c.ended
	c.ended = true
	return !before
}

// pause is the time between two queries whether NCCL has finished.
const pause = time.Millisecond

// Join creates the communicator of all ranks that join with the identity, for the bound device. It waits
// for the others until ctx is done. ctas is the number of blocks that its collectives use on a GPU, for which NCCL
// allocates buffers; 0: NCCL decides.
func (n *NCCL) Join(ctx context.Context, id UniqueID, rank, ranks, ctas int) (*Comm, error) {
	s := newSlot()
	r := C.planc_join(s, C.int(ranks), (*C.char)(unsafe.Pointer(&id)), C.int(rank), C.int(ctas))
	c := &Comm{Rank: rank, Ranks: ranks, Patience: time.Minute, c: *s}
	if err := c.wait(ctx, r, "ncclCommInitRankConfig", "rank %d of %d", rank, ranks); err != nil {
		if c.c != nil {
			_ = c.Abort()
		}
		return nil, err
	}
	C.free(unsafe.Pointer(s))
	return c, nil
}

// newSlot returns memory into which NCCL writes a communicator, possibly after its call has returned.
// Therefore it is not Go memory, and it is not freed unless NCCL has finished.
func newSlot() *C.ncclComm_t { return (*C.ncclComm_t)(C.calloc(1, C.sizeof_ncclComm_t)) }

// NoColor is the color of a rank that gets no communicator from [Comm.Split].
const NoColor = -1 // NCCL_SPLIT_NOCOLOR

// Split creates a communicator for each group of ranks that pass the same color, 0 or more, ordered by
// their keys. All ranks must call it. Those that pass [NoColor] get nil. ctas is that of [NCCL.Join].
func (c *Comm) Split(ctx context.Context, color, key, ctas int) (*Comm, error) {
	s := newSlot()
	r := c.call(func() C.ncclResult_t { return C.planc_split(c.c, C.int(color), C.int(key), s, C.int(ctas)) })
	// NCCL returns this at once, but writes s only when the whole communicator is ready again
	if r == C.planc_nccl_ok {
		r = C.planc_nccl_in_progress
	}
	if err := c.wait(ctx, r, "ncclCommSplit", "rank %d, color %d", c.Rank, color); err != nil {
		return nil, err
	}
	part := &Comm{Patience: c.Patience, c: *s}
	C.free(unsafe.Pointer(s))
	if color == NoColor {
		return nil, nil
	}
	if err := part.wait(ctx, C.planc_nccl_in_progress, "ncclCommSplit", "rank %d, color %d", c.Rank,
		color); err != nil {
		_ = part.Abort()
		return nil, err
	}
	var ranks, rank C.int
	err := errors.Join(ncclError(part, part.call(func() C.ncclResult_t {
		return C.planc_ncclCommCount(part.c, &ranks)
	}), "ncclCommCount", ""),
		ncclError(part, part.call(func() C.ncclResult_t {
			return C.planc_ncclCommUserRank(part.c, &rank)
		}), "ncclCommUserRank", ""))
	if err != nil {
		_ = part.Abort()
		return nil, err
	}
	part.Rank, part.Ranks = int(rank), int(ranks)
	return part, nil
}

// wait polls until the call that returned r has finished, or ctx is done.
func (c *Comm) wait(ctx context.Context, r C.ncclResult_t, call, what string, args ...any) error {
	for r == C.planc_nccl_in_progress {
		if err := c.state(&r); err != nil {
			return err
		}
		if r != C.planc_nccl_in_progress {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s of "+what+": %w", append(append([]any{call}, args...), context.Cause(ctx))...)
		case <-time.After(pause):
		}
	}
	return ncclError(c, r, call, what, args...)
}

// state queries the communicator's state.
func (c *Comm) state(r *C.ncclResult_t) error {
	return ncclError(c, c.call(func() C.ncclResult_t {
		return C.planc_ncclCommGetAsyncError(c.c, r)
	}), "ncclCommGetAsyncError", "")
}

// launched returns the error of a collective that was enqueued, once its ranks are connected.
func (c *Comm) launched(r C.ncclResult_t, call, what string, args ...any) error {
	if r == C.planc_nccl_ok {
		return nil
	}
	ctx, stop := context.WithTimeoutCause(context.Background(), c.Patience,
		fmt.Errorf("the ranks did not connect within %v", c.Patience))
	defer stop()
	return c.wait(ctx, r, call, what, args...)
}

// Failed returns an asynchronous error of the communicator, of this or another rank, and nil if none is
// known.
func (c *Comm) Failed() error {
	var r C.ncclResult_t
	if err := c.state(&r); err != nil {
		return err
	}
	return ncclError(c, r, collective, "%s", c.describe())
}

// Last says what the communicator connects, and its last call. Any goroutine may call it, and it does not
// block.
func (c *Comm) Last() string {
	if !c.mutex.TryLock() {
		return c.Name + ", in a call of NCCL"
	}
	c.mutex.Unlock()
	return c.describe()
}

// describe says what the communicator connects, and its last call. NCCL does not tell which call has
// failed. In a replayed graph, the last call is the last one of the graph.
func (c *Comm) describe() string {
	c.mutex.Lock()
	last := c.last
	c.mutex.Unlock()
	text := fmt.Sprintf("%s, rank %d of %d", c.Name, c.Rank, c.Ranks)
	if last.call == "" {
		return text
	}
	return text + ", last call: " + last.call + " of " + fmt.Sprintf(last.what, last.args...)
}

// Abort ends the communicator and its running calls after a failure. The peers get errors. It returns when
// no graph has work of the communicator any more; meanwhile, calls fail with [ErrEnded].
func (c *Comm) Abort() error {
	if !c.end() {
		return nil
	}
	return ncclError(nil, C.planc_ncclCommAbort(c.c), "ncclCommAbort", "")
}

// Close ends the communicator after its running calls. All ranks must call it, when no graph has work of
// the communicator any more.
func (c *Comm) Close(ctx context.Context) error {
	if err := c.Deregister(); err != nil {
		return err
	}
	r := c.call(func() C.ncclResult_t { return C.planc_ncclCommFinalize(c.c) })
	if err := c.wait(ctx, r, "ncclCommFinalize", "rank %d of %d", c.Rank, c.Ranks); err != nil {
		return err
	}
	if !c.end() {
		return ErrEnded
	}
	return ncclError(nil, C.planc_ncclCommDestroy(c.c), "ncclCommDestroy", "")
}
