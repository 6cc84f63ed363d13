package runtime

import (
	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/num"
)

// failure carries an error out of generated code, which has no error results, to the rank's command loop.
type failure struct{ err error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// group returns a group of the program as this rank's collectives use it.
func (r *Rank) group(i int) *comm.Group { return r.groups[i] }

// allReduce reduces buf over a group in place, in the members' order. Group -1 is the rank alone.
func allReduce[F num.Stored](r *Rank, group int, buf []F, op comm.Op) {
	if group >= 0 {
		check(comm.AllReduce(r.groups[group], buf, op))
	}
}
