package runtime

import (
	"errors"
	"testing"
)

// others are processes that hear of nothing but failures.
type others struct {
	Peers
	err error
}

func (o *others) Fail(err error) { o.err = err }
func (o *others) Err() error     { return o.err }
func (o *others) Close()         {}

// A process that leaves with an error of its own has its ranks fail: what they have begun on devices may wait for peers that do not come any more. One
// that leaves as all do has them end what they began.
func TestLeave(t *testing.T) {
	broken := errors.New("a full disk")
	for _, c := range []struct {
		err   error
		fails bool
	}{{broken, true}, {exitf(ExitFailed, "a full disk"), true}, {exitf(ExitNonfinite, "step 3 is not finite"), false}, {nil, false}} {
		crew, err := newCrew(bigram[float32](4, 1), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &run{team: &Team{Peers: &others{}}, crew: crew, over: make(chan struct{})}
		if got := r.leave(c.err); got != c.err {
			t.Errorf("%v became %v", c.err, got)
		}
		if failed := crew.world.Err(); (failed != nil) != c.fails {
			t.Errorf("%v: ranks fail with %v", c.err, failed)
		}
		crew.close()
	}
}
