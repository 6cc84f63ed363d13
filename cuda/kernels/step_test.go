package kernels

import (
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/rng"
)

// words returns a buffer of 64-bit numbers.
func words(v ...uint64) *emulate.Buffer {
	b := &emulate.Buffer{}
	for _, x := range v {
		b.Bytes = binary.LittleEndian.AppendUint64(b.Bytes, x)
	}
	return b
}

func wordsOf(b *emulate.Buffer) (v []uint64) {
	for at := 0; at < len(b.Bytes); at += 8 {
		v = append(v, binary.LittleEndian.Uint64(b.Bytes[at:]))
	}
	return v
}

// The device derives a step's dropout keys like the host.
func TestDropKeys(t *testing.T) {
	b := bench{t, elems[1], machineOf(t, "step.cu")}
	for _, n := range []int{1, 300} {
		var sites []int32
		want := make([]uint64, n)
		const seed, step = 1<<63 + 17, 123456789012
		for i := range want {
			sites = append(sites, int32(i%3), int32(i*7), int32(i%5))
			want[i] = rng.Key(seed, step, uint64(i%3), uint64(i*7), uint64(i%5))
		}
		keys := words(make([]uint64, n)...)
		b.run("drop_keys", 1, n, keys, ints(sites), words(seed, step), n)
		if got := wordsOf(keys); !slices.Equal(got, want) {
			t.Errorf("%d keys are %x, want %x", n, got, want)
		}
	}
}

// The device selects the host's words for a step after a skipped step, or after one that was not skipped.
func TestChoose(t *testing.T) {
	b := bench{t, elems[1], machineOf(t, "step.cu")}
	offer := make([]uint64, 46)
	for i := range offer {
		offer[i] = 0x7ff8_0000_0000_0000 + uint64(i) // the bits of NaN are preserved
	}
	for _, skipped := range []float64{0, 1} {
		reported := words(make([]uint64, 24)...)
		b.run("choose", 1, 23, reported, words(offer...), b.buffer([]float64{skipped}), words(77), 23)
		want := append(slices.Clone(offer[23*int(skipped):][:23]), 77)
		if got := wordsOf(reported); !slices.Equal(got, want) {
			t.Errorf("skipped %v: said %x, want %x", skipped, got, want)
		}
	}
}

// A step must be retried if a router needed more rounds than there are, or if the previous step must be.
func TestExceeds(t *testing.T) {
	b := bench{t, elems[1], machineOf(t, "step.cu")}
	for _, n := range []int{1, 300} {
		for _, c := range []struct {
			at            int
			rounds        int32
			spoiled, want float64
		}{{n - 1, 3, 0, 0}, {n - 1, 4, 0, 1}, {0, 5, 0, 1}, {0, 1, 2, 1}} {
			rounds, capacity := slices.Repeat([]int32{1}, n), slices.Repeat([]int32{1}, n)
			rounds[c.at], capacity[c.at] = c.rounds, 3
			flag := b.buffer(nans(1))
			b.run("exceeds", 1, 1, flag, ints(rounds), ints(capacity), b.buffer([]float64{c.spoiled}), n)
			if got := b.values(flag)[0]; got != c.want {
				t.Errorf("%d of %d rounds at %d of %d, spoiled %v: %v, want %v", c.rounds, 3, c.at, n, c.spoiled,
					got, c.want)
			}
		}
	}
}

// Choices are counted with and without dropped ones.
func TestCensus(t *testing.T) {
	b := bench{t, elems[0], machineOf(t, "experts.cu")}
	for _, s := range [][2]int{{1, 1}, {50, 7}, {777, 5}} {
		choices, experts := s[0], s[1]
		index := chosen(choices, experts)
		for i, e := range index {
			if e >= 0 && i%3 == 0 {
				index[i] = -1 - e
			}
		}
		saved, all := make([]int32, experts), make([]int32, experts)
		for _, e := range index {
			if e >= 0 {
				saved[e]++
			}
			all[max(e, -1-e)]++
		}
		k, a := ints(slices.Repeat([]int32{-7}, experts)), ints(slices.Repeat([]int32{-7}, experts))
		b.run("census", experts, choices, k, a, ints(index), choices, experts)
		if !slices.Equal(intsOf(k), saved) || !slices.Equal(intsOf(a), all) {
			t.Errorf("census of %v is %v and %v, want %v and %v", s, intsOf(k), intsOf(a), saved, all)
		}
	}
}

// A dropout key of attention in memory has the same effect as one passed by value.
func TestAttentionShapeKeyed(t *testing.T) {
	s := cpu.AttentionShape{Batch: 1, Seq: 2, KSeq: 2, Heads: 1, Group: 1, Dim: 4, VDim: 4, Dropout: 0.5,
		Key: 0x123456789}
	byValue, keyed := AttentionShape(&s), AttentionShapeKeyed(&s)
	at := int(unsafe.Offsetof(attend{}.KeyAddressed))
	if byValue[at] != 0 || keyed[at] != 1 {
		t.Errorf("shapes %v and %v", byValue, keyed)
	}
	keyed[at] = 0
	if !slices.Equal(byValue, keyed) {
		t.Errorf("shapes %v and %v differ in more than KeyAddressed", byValue, keyed)
	}
}
