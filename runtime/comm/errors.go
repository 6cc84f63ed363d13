package comm

import (
	"fmt"
	"strings"
	"time"
)

// Lost is the error of a collective that ended because another rank failed.
type Lost struct {
	Rank  int    // rank that waited
	Group string // group of the collective
	Op    string // name of the collective
	Cause error  // error given to World.Fail
}

func (e *Lost) Error() string {
	return fmt.Sprintf("rank %d gave up %s over %s: %v", e.Rank, e.Op, e.Group, e.Cause)
}

func (e *Lost) Unwrap() error { return e.Cause }

// Timeout is the error of a collective for which some members did not arrive in time.
type Timeout struct {
	Rank   int
	Group  string
	Op     string
	Absent []int // ranks that did not arrive
	After  time.Duration
}

func (e *Timeout) Error() string {
	return fmt.Sprintf("rank %d waited %v in %s over %s for %s", e.Rank, e.After, e.Op, e.Group, ranksText(e.Absent))
}

// Mismatch is the error for members that called different collectives, or with buffers of different sizes.
type Mismatch struct {
	Group      string
	Rank, Peer int
	RankCall   string // what Rank called, with its length in elements
	PeerCall   string // what Peer called
}

func (e *Mismatch) Error() string {
	return fmt.Sprintf("ranks %d and %d met over %s in different collectives: %s and %s",
		e.Rank, e.Peer, e.Group, e.RankCall, e.PeerCall)
}

func ranksText(ranks []int) string {
	parts := make([]string, len(ranks))
	for i, r := range ranks {
		parts[i] = fmt.Sprint(r)
	}
	word := "ranks "
	if len(parts) == 1 {
		word = "rank "
	}
	return word + strings.Join(parts, ", ")
}
