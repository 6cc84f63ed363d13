package feed

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/planc-dev/planc/runtime/program"
)

// Samples of a slow disk are read several at once, those that are in memory one after the other; both give the same
// batch, and the error of the first sample that has one.
func TestSamplesOfASlowDiskAreReadAtOnce(t *testing.T) {
	const vocab = 11
	l := &program.BatchLayout{SeqLen: 6}
	var wait time.Duration
	var now, largest atomic.Int32
	from, bad := Reader{atOnce: 8, tokens: vocab, labels: vocab}, int64(1<<40)
	from.sample = func(g int64, tokens, labels []int32) (int, error) {
		largest.Store(max(largest.Load(), now.Add(1)))
		defer now.Add(-1)
		time.Sleep(wait)
		if g >= bad {
			return 0, fmt.Errorf("sample %d", g)
		}
		for i := range tokens {
			tokens[i], labels[i] = int32((g+int64(i))%vocab), int32((g+int64(i)+1)%vocab)
		}
		return len(tokens), nil
	}
	want := NewBatch(32, l)
	want.Read(from, 32, 60, 1)
	if want.Err != nil {
		t.Fatal(want.Err)
	}
	f := &Prefetcher{from: from, end: 60, size: 32, atOnce: 8, next: 32}
	got := NewBatch(32, l)
	for _, tt := range []struct {
		wait      time.Duration
		largest   int32 // samples at once
		afterward int
	}{{5 * time.Millisecond, 8, 8}, {0, 8, 1}, {0, 1, 1}, {5 * time.Millisecond, 1, 8}} {
		wait = tt.wait
		largest.Store(0)
		f.fill(got)
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if n := largest.Load(); n > tt.largest || tt.wait > 0 && n < tt.largest/2 {
			t.Errorf("with %v a sample, %d are read at once, want %d", tt.wait, n, tt.largest)
		}
		if tt.wait > 0 && f.atOnce != tt.afterward {
			t.Errorf("after %v a sample, %d are read at once, want %d", tt.wait, f.atOnce, tt.afterward)
		}
		if tt.wait == 0 { // on a busy machine memory may seem slow
			f.atOnce = tt.afterward
		}
		if !slices.Equal(got.Tokens, want.Tokens) || !slices.Equal(got.Labels, want.Labels) ||
			!slices.Equal(got.Unmasked, want.Unmasked) {
			t.Errorf("with %v a sample the batch is another", tt.wait)
		}
	}
	bad = 37
	for _, atOnce := range []int{1, 8} {
		got.Read(from, 32, 60, atOnce)
		if got.Err == nil || got.Err.Error() != "sample 37" {
			t.Errorf("%d at once: error %v, want that of sample 37", atOnce, got.Err)
		}
	}
	from.sample = func(int64, []int32, []int32) (int, error) { panic("a fault") }
	got.Read(from, 32, 60, 8)
	if got.Err == nil || !strings.HasPrefix(got.Err.Error(), "reading samples from 32 on: a fault\n") {
		t.Errorf("a panic is the error %v", got.Err)
	}
}
