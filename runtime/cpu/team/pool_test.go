package team

import (
	"sync"
	"sync/atomic"
	"testing"
)

// item is an object of a pool that only one caller may have at a time.
type item struct{ lent atomic.Bool }

func TestPoolLendsToOneAtATime(t *testing.T) {
	var p Pool[item]
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for round := range 500 {
				var held []*item
				for range 1 + round%9 { // more than a shelf's fixed places
					x := p.Get()
					if x.lent.Swap(true) {
						t.Error("memory in use is lent a second time")
					}
					held = append(held, x)
				}
				for _, x := range held {
					x.lent.Store(false)
					p.Put(x)
				}
			}
		})
	}
	all.Wait()
}

// An object that any core returned is reused before a new one is created, and a core gets its most recent
// one first.
func TestPoolKeepsWhatItLent(t *testing.T) {
	var p Pool[item]
	lent := make(map[*item]bool)
	for i := range 3 * poolShelves {
		x := new(item)
		lent[x] = true
		p.shelves[i%poolShelves].put(x)
	}
	for range len(lent) {
		x := p.Get()
		if !lent[x] {
			t.Fatal("a new one, though one was there")
		}
		delete(lent, x)
	}
	var s shelf[item]
	var in []*item
	for range 3 * len(s.few) {
		in = append(in, new(item))
		s.put(in[len(in)-1])
	}
	for i := len(in) - 1; i >= 0; i-- {
		if s.get() != in[i] {
			t.Fatalf("number %d of %d was not the next", i, len(in))
		}
	}
	if s.get() != nil {
		t.Error("an empty shelf has something")
	}
}
