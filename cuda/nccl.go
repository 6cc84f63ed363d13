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

// NCCL is NVIDIA's library of collectives, open.
type NCCL struct {
	Path    string
	Version string // 2.27.3
	CTAs    int    // blocks that each communicator has on a GPU, no more and no fewer; 0: NCCL decides
}

var openNCCL = sync.OnceValues(func() (*NCCL, error) { return loadNCCL(nil) })

// OpenNCCL opens NCCL where the system finds it. It fails with a [*MissingError] or an [*OldError].
func OpenNCCL() (*NCCL, error) { return openNCCL() }

func loadNCCL(folders []string) (*NCCL, error) {
	path, err := load(LibraryNamed("NCCL"), folders, "ncclGetVersion", func(l unsafe.Pointer) *C.char {
		return C.planc_bind_nccl(l)
	})
	if err != nil {
		return nil, err
	}
	var v C.int
	if err := refused(nil, C.planc_ncclGetVersion(&v), "ncclGetVersion", ""); err != nil {
		return nil, err
	}
	return &NCCL{Path: path, Version: fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100)}, nil
}

// refused is the error of a call of NCCL, nil if it succeeded or goes on.
func refused(c *Comm, r C.ncclResult_t, call, what string, args ...any) error {
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

// UniqueID is what ranks share in order to find each other: one makes it, and the others are sent it.
type UniqueID [128]byte

// NewID makes an identity; the calling process is then where the others meet.
func (n *NCCL) NewID() (id UniqueID, err error) {
	err = refused(nil, C.planc_ncclGetUniqueId((*C.ncclUniqueId)(unsafe.Pointer(&id))), "ncclGetUniqueId", "")
	return id, err // after the call, which fills in id
}

// Comm is a group of ranks that communicate, as one of them has it. One goroutine uses it; [Comm.Failed] and
// [Comm.Abort] are for any.
type Comm struct {
	Rank, Ranks int
	Name        string // for people: what it joins
	// that a collective has to connect its ranks, the first time; what it does then is the stream's
	Patience time.Duration
	c        C.ncclComm_t
	ctas     int // as [NCCL] has it, for parts

	mutex   sync.Mutex // held while NCCL is called with c, but to end it
	ended   bool       // c is no more, or soon
	grouped bool       // calls are kept
	kept    []kept     // for the end of a group
	last    kept       // what was begun last, guarded by mutex

	registered []unsafe.Pointer // NCCL's handles of memory that it knows
}

// ErrEnded is what a communicator says that was aborted or closed.
var ErrEnded = errors.New("cuda: the communicator was ended")

// ended is how call says so.
const ended C.ncclResult_t = -1

// call calls NCCL with the communicator, unless that was ended.
func (c *Comm) call(f func() C.ncclResult_t) C.ncclResult_t {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.ended {
		return ended
	}
	return f()
}

// end makes all calls from now on [ErrEnded], when none is under way; it is false if they are already.
func (c *Comm) end() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	before := c.ended
	c.ended = true
	return !before
}

// pause is how long to wait before asking NCCL again whether it has finished.
const pause = time.Millisecond

// Join makes the communicator of all ranks that join with the identity; the bound device is this rank's. It waits for
// the others until ctx is done, and then gives up.
func (n *NCCL) Join(ctx context.Context, id UniqueID, rank, ranks int) (*Comm, error) {
	s := newSlot()
	r := C.planc_join(s, C.int(ranks), (*C.char)(unsafe.Pointer(&id)), C.int(rank), C.int(n.CTAs))
	c := &Comm{Rank: rank, Ranks: ranks, Patience: time.Minute, c: *s, ctas: n.CTAs}
	if err := c.wait(ctx, r, "ncclCommInitRankConfig", "rank %d of %d", rank, ranks); err != nil {
		if c.c != nil {
			_ = c.Abort()
		}
		return nil, err
	}
	C.free(unsafe.Pointer(s))
	return c, nil
}

// newSlot is where NCCL writes a communicator, maybe after its call has returned: hence not Go's memory, and kept where
// NCCL was not seen to finish.
func newSlot() *C.ncclComm_t { return (*C.ncclComm_t)(C.calloc(1, C.sizeof_ncclComm_t)) }

// NoColor is what a rank names in [Comm.Split] that is to be in no part.
const NoColor = -1 // NCCL_SPLIT_NOCOLOR

// Split makes a communicator of those ranks that name the same color, 0 or more, in the order of their keys. All ranks
// call it; those that name [NoColor] get none.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	s := newSlot()
	r := c.call(func() C.ncclResult_t { return C.planc_split(c.c, C.int(color), C.int(key), s, C.int(c.ctas)) })
	if r == C.planc_nccl_ok { // which NCCL says at once, and writes s only when the whole communicator is ready again
		r = C.planc_nccl_in_progress
	}
	if err := c.wait(ctx, r, "ncclCommSplit", "rank %d, color %d", c.Rank, color); err != nil {
		return nil, err
	}
	part := &Comm{Patience: c.Patience, c: *s, ctas: c.ctas}
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
	err := errors.Join(refused(part, part.call(func() C.ncclResult_t {
		return C.planc_ncclCommCount(part.c, &ranks)
	}), "ncclCommCount", ""),
		refused(part, part.call(func() C.ncclResult_t {
			return C.planc_ncclCommUserRank(part.c, &rank)
		}), "ncclCommUserRank", ""))
	if err != nil {
		_ = part.Abort()
		return nil, err
	}
	part.Rank, part.Ranks = int(rank), int(ranks)
	return part, nil
}

// wait asks until the call that answered r has finished, or ctx is done.
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
	return refused(c, r, call, what, args...)
}

// state asks NCCL how the communicator is.
func (c *Comm) state(r *C.ncclResult_t) error {
	return refused(c, c.call(func() C.ncclResult_t {
		return C.planc_ncclCommGetAsyncError(c.c, r)
	}), "ncclCommGetAsyncError", "")
}

// begun is the error of a collective that was put on a stream, once its ranks are connected.
func (c *Comm) begun(r C.ncclResult_t, call, what string, args ...any) error {
	if r == C.planc_nccl_ok {
		return nil
	}
	ctx, stop := context.WithTimeoutCause(context.Background(), c.Patience,
		fmt.Errorf("the ranks are not connected after %v", c.Patience))
	defer stop()
	return c.wait(ctx, r, call, what, args...)
}

// Failed is what has gone wrong in the communicator since, also on other ranks; nil if nothing is known to.
func (c *Comm) Failed() error {
	var r C.ncclResult_t
	if err := c.state(&r); err != nil {
		return err
	}
	return refused(c, r, collective, "%s", c.under())
}

// Last says what the communicator joins, and what was begun in it last. It is for any goroutine, and waits for nobody.
func (c *Comm) Last() string {
	if !c.mutex.TryLock() {
		return c.Name + ", which NCCL is called with"
	}
	c.mutex.Unlock()
	return c.under()
}

// under says what the communicator joins, and what was begun in it last. NCCL does not say which of its calls has
// failed; of a graph that is done again it is the graph's last.
func (c *Comm) under() string {
	c.mutex.Lock()
	last := c.last
	c.mutex.Unlock()
	text := fmt.Sprintf("%s, rank %d of %d", c.Name, c.Rank, c.Ranks)
	if last.call == "" {
		return text
	}
	return text + ", begun last: " + last.call + " of " + fmt.Sprintf(last.what, last.args...)
}

// Abort ends the communicator and what is under way in it. It is for when something has failed; the peers get errors.
// It returns when no graph has work of the communicator any more; what is called meanwhile fails with [ErrEnded].
func (c *Comm) Abort() error {
	if !c.end() {
		return nil
	}
	return refused(nil, C.planc_ncclCommAbort(c.c), "ncclCommAbort", "")
}

// Close ends the communicator after what is under way. All ranks call it, when no graph has work of it any more.
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
	return refused(nil, C.planc_ncclCommDestroy(c.c), "ncclCommDestroy", "")
}
