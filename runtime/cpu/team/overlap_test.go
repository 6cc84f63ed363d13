package team

import (
	"testing"
	"time"
)

// A helper calls the given function between jobs, whether it sleeps or works, and executes parts again
// afterwards.
func TestOverlap(t *testing.T) {
	Threads(1, 2)
	defer Threads(0, 0)
	called := make(chan struct{})
	f := func() { called <- struct{}{} }
	for range 3 {
		Overlap(0, &f)
		select {
		case <-called:
		case <-time.After(10 * time.Second):
			t.Fatal("no helper called it")
		}
		time.Sleep(5 * time.Millisecond) // it falls asleep
	}
}
