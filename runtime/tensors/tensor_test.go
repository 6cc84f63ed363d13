package tensors

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/program"
)

// split is a program of two layers of one matrix [rows@rowAxes, cols@colAxes], and a vector, whose flat
// space is padded for 2 shards over dp.
func split(tp, dp int, rowAxes, colAxes []string, shard bool) *program.Program {
	p := &program.Program{Elem: program.F64,
		Mesh:   []program.Axis{{Name: "tp", Size: tp}, {Name: "dp", Size: dp}},
		Groups: []program.Group{{Axes: []string{"dp"}}},
		Params: []program.Param{
			{Name: "layers.{layer}.w", Layers: 2, Dims: []program.Dim{{Name: "rows", Size: 5, Axes: rowAxes},
				{Name: "cols", Size: 7, Axes: colAxes}},
				Places: []program.Place{{Segment: 0, Class: 0, Offset: 3}}, Init: program.Init{Kind: program.Normal,
					Std: 1}, Decay: true},
			{Name: "norm", Layers: 1, Dims: []program.Dim{{Name: "cols", Size: 7, Axes: nil}},
				Places: []program.Place{{Segment: 1, Class: 0, Offset: 0}},
				Init:   program.Init{Kind: program.Ones}},
		},
		Batch: program.BatchLayout{MicroBatch: 1, MicroBatches: 1, Replicas: 1, GlobalBatch: 1},
		Stages: []program.Stage{{
			Buckets: []program.Bucket{{Offset: 0, Elems: 96, Reduce: -1, Sum: 0, Shard: -1, State: 8,
				ReplicatedOver: []string{"dp"},
				Pieces: []program.Piece{{Segment: 0, Layer: 0, Offset: 0}, {Segment: 1, Layer: 0, Offset: 38},
					{Segment: 0, Layer: 1, Offset: 42}}}},
			Arena: program.Arena{Size: 6144, Params: program.Region{Offset: 0, Size: 1024},
				Grads: program.Region{Offset: 1024, Size: 1024}, Moment1: program.Region{Offset: 2048, Size: 2048},
				Moment2: program.Region{Offset: 4096, Size: 2048}},
		}},
	}
	if shard {
		p.Stages[0].Buckets[0].Shard = 0
	}
	return p
}

var splits = map[string]*program.Program{
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

// start returns the stores of all ranks of a program.
func start(p *program.Program) *Stores {
	mesh := make(comm.Mesh, len(p.Mesh))
	for i, a := range p.Mesh {
		mesh[i] = comm.Axis(a)
	}
	out := &Stores{}
	for id := range mesh.Size() {
		s := NewStore(p, mesh, id)
		out.All = append(out.All, &s)
	}
	out.Mine = out.All
	return out
}

// startInitialized returns the stores after their parameters are initialized.
func startInitialized(p *program.Program) *Stores {
	out := start(p)
	for _, s := range out.All {
		s.Initialize(9)
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// saved returns a safetensors file of some kinds.
func saved(t *testing.T, c *Stores, kinds []kind) []byte {
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
	want := saved(t, startInitialized(splits["whole"]), []kind{paramKind(splits["whole"])})
	for name, p := range splits {
		c := startInitialized(p)
		if got := saved(t, c, []kind{paramKind(p)}); !bytes.Equal(got, want) {
			t.Errorf("%s: other parameters", name)
		}
		values := 0
		for _, r := range c.All {
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

// A panic in any goroutine that draws parameters is a panic of the caller.
func TestPanicOfInitReachesTheCaller(t *testing.T) {
	s := start(splits["whole"]).All[0]
	s.Arena = s.Arena[:8]
	defer func() {
		if x := recover(); !strings.Contains(fmt.Sprint(x), "tensors.put[") {
			t.Errorf("panic %v", x)
		}
	}()
	s.Initialize(9)
}

// Of a tensor that is drawn in its first rows alone the other rows begin at 0, and so does a row that is to, on every
// sharding.
func TestInitOfSomeRows(t *testing.T) {
	change := func(p *program.Program, init program.Init) *program.Program {
		q := *p
		q.Params = slices.Clone(p.Params)
		init.Kind, init.Std = q.Params[0].Init.Kind, q.Params[0].Init.Std
		q.Params[0].Init = init
		return &q
	}
	begin := func(p *program.Program) []byte {
		return saved(t, startInitialized(p), []kind{paramKind(p)})
	}
	for _, c := range []struct {
		init         program.Init
		equal, zeros int // rows of the two layers of five, and of the other tensor
	}{{program.Init{First: 2}, 5, 6}, {program.Init{Zero: 1}, 9, 2}, {program.Init{Zero: 5}, 9, 2},
		{program.Init{First: 3, Zero: 2}, 5, 6}} {
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
	from := start(splits["columns, zero"])
	kinds := append([]kind{paramKind(splits["whole"])}, momentKinds(splits["whole"])...)
	for _, r := range from.All {
		for k := range kinds {
			for i, ts := range Of(r.Data, r.Coord) {
				lo, hi, at := kinds[k].piece(r, &ts)
				ts.Runs(lo, hi, func(local, logical, n int) {
					x := View[float64](r, at+(local-lo)*8, n)
					for j := range x {
						x[j] = float64(1000*k + 100*i + logical + j)
					}
				})
			}
		}
	}
	want := saved(t, from, kinds)
	dir := t.TempDir()
	checkpoint, err := ckpt.Save(dir, ckpt.Manifest{Step: 1}, []ckpt.Content{content[float64](from, "x", kinds)})
	must(t, err)
	for name, p := range splits {
		c := start(p)
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
	ts := Of(splits["whole"], map[string]int{})
	for _, test := range []struct {
		lo, hi int
		want   []Span
	}{
		{0, 96, []Span{{3, 38, true, nil}, {38, 45, false, nil}, {45, 80, true, nil}}},
		{0, 48, []Span{{3, 38, true, nil}, {38, 45, false, nil}, {45, 48, true, nil}}},
		{40, 42, []Span{{40, 42, false, nil}}},
		{80, 96, nil},
	} {
		if got := Spans(ts, test.lo, test.hi); !slices.Equal(got, test.want) {
			t.Errorf("spans of [%d, %d): %v, want %v", test.lo, test.hi, got, test.want)
		}
	}
	ts[2].param = &program.Param{Decay: true}
	if got := Spans(ts, 0, 96); !slices.Equal(got, []Span{{3, 80, true, nil}}) {
		t.Errorf("spans that touch were not joined: %v", got)
	}
}

func TestRowsCoverEachElementOnce(t *testing.T) {
	for name, p := range splits {
		seen := map[string]int{}
		for _, r := range start(p).All {
			coord := r.Coord
			if coord["dp"] != 0 && !isSplitOver(&p.Params[0], "dp") {
				continue
			}
			ts := Of(p, coord)[0]
			ts.Runs(0, ts.Local, func(local, logical, n int) {
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
