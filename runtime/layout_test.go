package runtime

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/ckpt"
)

// split is a program of two layers of one matrix [rows@rowAxes, cols@colAxes], and a vector, whose flat
// space is padded for 2 shards over dp.
func split(tp, dp int, rowAxes, colAxes []string, shard bool) *Program {
	p := &Program{ProgramData: ProgramData{Elem: F64,
		Mesh:   []Axis{{Name: "tp", Size: tp}, {Name: "dp", Size: dp}},
		Groups: []Group{{Axes: []string{"dp"}}},
		Params: []Param{
			{Name: "layers.{layer}.w", Layers: 2, Dims: []Dim{{Name: "rows", Size: 5, Axes: rowAxes},
				{Name: "cols", Size: 7, Axes: colAxes}},
				Places: []Place{{Segment: 0, Class: 0, Offset: 3}}, Init: Init{Kind: Normal, Std: 1}, Decay: true},
			{Name: "norm", Layers: 1, Dims: []Dim{{Name: "cols", Size: 7, Axes: nil}},
				Places: []Place{{Segment: 1, Class: 0, Offset: 0}},
				Init:   Init{Kind: Ones}},
		},
		Batch: BatchLayout{MicroBatch: 1, MicroBatches: 1, Replicas: 1, GlobalBatch: 1},
		Stages: []Stage{{
			Buckets: []Bucket{{Offset: 0, Elems: 96, Reduce: -1, Sum: 0, Shard: -1, State: 8,
				ReplicatedOver: []string{"dp"},
				Pieces: []Piece{{Segment: 0, Layer: 0, Offset: 0}, {Segment: 1, Layer: 0, Offset: 38},
					{Segment: 0, Layer: 1, Offset: 42}}}},
			Arena: Arena{Size: 6144, Params: Region{Offset: 0, Size: 1024}, Grads: Region{Offset: 1024, Size: 1024},
				Moment1: Region{Offset: 2048, Size: 2048},
				Moment2: Region{Offset: 4096, Size: 2048}},
		}}},
		Segments: []Segment{{SegmentData: SegmentData{Name: "layers"},
			Forward:  idle,
			Backward: idle,
		}, {SegmentData: SegmentData{Name: "norm"},
			Forward:  idle,
			Backward: idle,
		}},
	}
	if shard {
		p.Stages[0].Buckets[0].Shard = 0
	}
	return p
}

func idle(*Rank, *Block) {}

var splits = map[string]*Program{
	"whole":          split(1, 1, nil, nil, false),
	"dp 2":           split(1, 2, nil, nil, false),
	"zero":           split(1, 2, nil, nil, true),
	"columns":        split(2, 1, nil, []string{"tp"}, false),
	"rows":           split(2, 1, []string{"tp"}, nil, false),
	"columns, zero":  split(2, 2, nil, []string{"tp"}, true),
	"rows of 3":      split(3, 1, []string{"tp"}, nil, false), // 2 + 2 + 1: padded
	"both":           split(2, 2, []string{"dp"}, []string{"tp"}, false),
	"rows over both": split(2, 2, []string{"dp", "tp"}, nil, false), // 2 + 2 + 1 + 0
}

func startSplit(t *testing.T, p *Program) *crew {
	t.Helper()
	must(t, p.validate())
	c, err := newCrew(p, 0, nil)
	must(t, err)
	t.Cleanup(c.close)
	return c
}

// file is a safetensors file of some kinds.
func saved(t *testing.T, c *crew, kinds []kind) []byte {
	t.Helper()
	var out bytes.Buffer
	content := content[float64](c, "x", kinds)
	w, err := ckpt.NewWriter(&out, content.Tensors, nil)
	must(t, err)
	for i := range content.Tensors {
		must(t, content.Fill(i, w))
	}
	must(t, w.Close())
	return out.Bytes()
}

// Initial parameters, as a checkpoint gathers them, are the same on every sharding; padding is zero.
func TestInitIsTheSameOnEverySharding(t *testing.T) {
	whole := startSplit(t, splits["whole"])
	must(t, whole.do(func(r *Rank) { initParams[float64](r, 9) }))
	want := saved(t, whole, []kind{whole.ranks[0].Program.paramKind()})
	for name, p := range splits {
		c := startSplit(t, p)
		must(t, c.do(func(r *Rank) { initParams[float64](r, 9) }))
		if got := saved(t, c, []kind{p.paramKind()}); !bytes.Equal(got, want) {
			t.Errorf("%s: other parameters", name)
		}
		values := 0
		for _, r := range c.ranks {
			for _, x := range View[float64](r, 0, 96) {
				if x != 0 {
					values++
				}
			}
		}
		copies := map[string]int{"whole": 77, "columns": 84, "rows": 84, "rows of 3": 91, "both": 98}
		if n, ok := copies[name]; ok && values != n {
			t.Errorf("%s: %d values are not zero, want %d", name, values, n)
		}
	}
}

// A panic while parameters are drawn, on whichever thread, is the rank's error, and nobody is left waiting.
func TestPanicOfInitIsAnError(t *testing.T) {
	c := startSplit(t, splits["whole"])
	err := c.do(func(r *Rank) {
		r.Arena = r.Arena[:8]
		initParams[float64](r, 9)
	})
	if err == nil || !strings.HasPrefix(err.Error(), "rank 0: ") || !strings.Contains(err.Error(), "runtime.put[") {
		t.Errorf("error %v", err)
	}
}

// Of a tensor that is drawn in its first rows alone the other rows begin at 0, and so does a row that is to, on every
// sharding.
func TestInitOfSomeRows(t *testing.T) {
	change := func(p *Program, init Init) *Program {
		q := *p
		q.Params = slices.Clone(p.Params)
		init.Kind, init.Std = q.Params[0].Init.Kind, q.Params[0].Init.Std
		q.Params[0].Init = init
		return &q
	}
	begin := func(p *Program) []byte {
		c := startSplit(t, p)
		must(t, c.do(func(r *Rank) { initParams[float64](r, 9) }))
		return saved(t, c, []kind{p.paramKind()})
	}
	for _, c := range []struct {
		init         Init
		equal, zeros int // rows of the two layers of five, and of the other tensor
	}{{Init{First: 2}, 5, 6}, {Init{Zero: 1}, 9, 2}, {Init{Zero: 5}, 9, 2}, {Init{First: 3, Zero: 2}, 5, 6}} {
		const row = 7 * 8 // bytes
		all, some := begin(splits["whole"]), begin(change(splits["whole"], c.init))
		zero := make([]byte, row)
		equal, zeros := 0, 0
		for at := len(all) - 11*row; at < len(all); at += row {
			a, b := all[at:at+row], some[at:at+row]
			if bytes.Equal(a, b) {
				equal++
			} else if bytes.Equal(b, zero) {
				zeros++
			}
		}
		if equal != c.equal || zeros != c.zeros {
			t.Errorf("%+v: %d rows are as they were, want %d; %d rows are 0, want %d", c.init, equal, c.equal,
				zeros, c.zeros)
		}
		for name, p := range splits {
			if got := begin(change(p, c.init)); !bytes.Equal(got, some) {
				t.Errorf("%s, %+v: other parameters", name, c.init)
			}
		}
	}
}

// What one plan saved, moments too, every other plan loads and saves as it was.
func TestCheckpointsMoveBetweenPlans(t *testing.T) {
	from := startSplit(t, splits["columns, zero"])
	kinds := append([]kind{splits["whole"].paramKind()}, splits["whole"].momentKinds()...)
	must(t, from.do(func(r *Rank) {
		for k := range kinds {
			for i, ts := range tensors(r.Program, r.Coord) {
				lo, hi, at := kinds[k].piece(r, &ts)
				ts.runs(lo, hi, func(local, logical, n int) {
					for j, v := range View[float64](r, at+(local-lo)*8, n) {
						_ = v
						View[float64](r, at+(local-lo)*8, n)[j] = float64(1000*k + 100*i + logical + j)
					}
				})
			}
		}
	}))
	want := saved(t, from, kinds)
	dir := t.TempDir()
	checkpoint, err := ckpt.Save(dir, ckpt.Manifest{Step: 1}, []ckpt.Content{content[float64](from, "x", kinds)})
	must(t, err)
	for name, p := range splits {
		c := startSplit(t, p)
		f, err := ckpt.OpenFile(checkpoint.Path + "/x")
		must(t, err)
		for _, k := range kinds {
			must(t, load[float64](c, k, f.Tensor))
		}
		must(t, f.Close())
		if got := saved(t, c, kinds); !bytes.Equal(got, want) {
			t.Errorf("%s: other tensors", name)
		}
	}
}

func TestSpans(t *testing.T) {
	ts := tensors(splits["whole"], map[string]int{})
	for _, test := range []struct {
		lo, hi int
		want   []span
	}{
		{0, 96, []span{{3, 38, true, nil}, {38, 45, false, nil}, {45, 80, true, nil}}},
		{0, 48, []span{{3, 38, true, nil}, {38, 45, false, nil}, {45, 48, true, nil}}},
		{40, 42, []span{{40, 42, false, nil}}},
		{80, 96, nil},
	} {
		if got := spansOf(ts, test.lo, test.hi); !slices.Equal(got, test.want) {
			t.Errorf("spans of [%d, %d): %v, want %v", test.lo, test.hi, got, test.want)
		}
	}
	ts[2].param = &Param{Decay: true}
	if got := spansOf(ts, 0, 96); !slices.Equal(got, []span{{3, 80, true, nil}}) {
		t.Errorf("spans that touch were not joined: %v", got)
	}
}

func TestRowsCoverEachElementOnce(t *testing.T) {
	for name, p := range splits {
		seen := map[string]int{}
		mesh := p.mesh()
		for rank := range mesh.Size() {
			coord := map[string]int{}
			for i, c := range mesh.Coord(rank) {
				coord[mesh[i].Name] = c
			}
			if coord["dp"] != 0 && !isSplitOver(&p.Params[0], "dp") {
				continue
			}
			ts := tensors(p, coord)[0]
			ts.runs(0, ts.local, func(local, logical, n int) {
				for j := range n {
					seen[strconv.Itoa(logical+j)]++
				}
			})
		}
		for i := range 35 {
			if seen[strconv.Itoa(i)] != 1 || len(seen) != 35 {
				t.Errorf("%s: element %d occurs %d times", name, i, seen[strconv.Itoa(i)])
			}
		}
	}
}

func TestValidate(t *testing.T) {
	p := split(1, 3, nil, nil, true)
	p.Stages[0].Buckets[0].Elems = 95
	if err := p.validate(); err == nil ||
		err.Error() != "runtime: the program is wrong: bucket 0 has 95 elements, which 3 shards do not divide" {
		t.Errorf("error %v", err)
	}
}
