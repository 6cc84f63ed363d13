package search

import (
	"testing"
)

// A watcher sees the number of families grow, then the number processed, and the best plan get faster. Later searches
// for the explanation are not reported.
func TestWatch(t *testing.T) {
	p := problem175(t)
	p.Pins = Pins{"tp": {"1", "2", "4", "8"}} // which an explanation removes
	plan := must(t, p).Best.Plan
	watchedSearch(t, "search", p, func(p *Problem) error { _, err := Search(p); return err })
	watchedSearch(t, "beside", p, func(p *Problem) error { _, _, err := SearchWithGiven(p, plan); return err })
}

// watchedSearch compares each report of a search with the previous one.
func watchedSearch(t *testing.T, name string, p *Problem, do func(*Problem) error) {
	t.Helper()
	var last Progress
	reported, best := 0, 0
	q := *p
	q.Watch = func(at Progress) {
		reported++
		if at.Done < last.Done || at.Families < last.Families || at.Best == 0 && last.Best > 0 ||
			last.Best > 0 && at.Best > last.Best {
			t.Errorf("%s: %+v after %+v", name, at, last)
		}
		last = at
		if at.Best > 0 {
			best++
		}
	}
	if err := do(&q); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: said %d times, %d with a best plan, last %+v", name, reported, best, last)
	if best == 0 {
		t.Errorf("%s: said %d times where it is, never with a plan", name, reported)
	}
}
