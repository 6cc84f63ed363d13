package rank

import (
	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/num"
)

// failure carries an error out of generated code, which has no error results, to the rank's command loop.
type failure struct{ err error }

// Check ends the rank's command with err if it is not nil. It is for functions that generated code calls, which has no
// error results.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// CommGroup returns a group of the program as this rank's collectives use it.
func (r *Rank) CommGroup(i int) *comm.Group { return r.groups[i] }

// AllReduce reduces buf over a group in place, in the members' order. Group -1 is the rank alone.
func AllReduce[F num.Stored](r *Rank, group int, buf []F, op comm.Op) {
	if group >= 0 {
		Check(comm.AllReduce(r.groups[group], buf, op))
	}
}
