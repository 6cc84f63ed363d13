package tensors

import (
	"bytes"
	"fmt"
	"maps"
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
	"rows over both": split(2, 2, []string{"dp", "tp"}, nil, false),         // 2 + 2 + 1 + 0
	"padded rows":    padded(split(2, 1, []string{"tp"}, nil, false), 0, 4), // 4 + 1
	"padded columns": padded(split(2, 2, nil, []string{"tp"}, true), 1, 5),  // 5 + 2
	"apart":          apart(split(2, 1, []string{"tp"}, nil, false), 12),
	"apart, zero":    apart(split(2, 2, nil, []string{"tp"}, true), 7),
}

// grouped returns the program with a matrix of 3 columns, each of two elements.
func grouped(p *program.Program) *program.Program {
	p.Params[0].Dims[1].Size = 3
	p.Params[0].Dims = append(p.Params[0].Dims, program.Dim{Name: "group", Size: 2})
	return p
}

// apart returns the program with rows of the matrix that begin every pitch elements.
func apart(p *program.Program, pitch int) *program.Program {
	p.Params[0].Dims[1].Pitch = pitch
	return p
}

// padded returns the program with wider parts of a dim of the matrix.
func padded(p *program.Program, dim, width int) *program.Program {
	p.Params[0].Dims[dim].Width = width
	return p
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
		{0, 96, []Span{{3, 38, true, 1, nil}, {38, 45, false, 1, nil}, {45, 80, true, 1, nil}}},
		{0, 48, []Span{{3, 38, true, 1, nil}, {38, 45, false, 1, nil}, {45, 48, true, 1, nil}}},
		{40, 42, []Span{{40, 42, false, 1, nil}}},
		{80, 96, nil},
	} {
		if got := Spans(ts, test.lo, test.hi); !slices.Equal(got, test.want) {
			t.Errorf("spans of [%d, %d): %v, want %v", test.lo, test.hi, got, test.want)
		}
	}
	ts[2].param = &program.Param{Decay: true}
	if got := Spans(ts, 0, 96); !slices.Equal(got, []Span{{3, 80, true, 1, nil}}) {
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

// sideBySide returns a program with a second matrix: side by side with the first one, or behind it. With groups, each
// column of the first one has two elements.
func sideBySide(adjacent, shard, groups bool) *program.Program {
	p := split(2, 2, nil, []string{"tp"}, shard)
	x := p.Params[0]
	x.Name, x.Dims = "layers.{layer}.x", slices.Clone(x.Dims)
	x.Dims[1].Size = 5
	x.Places = []program.Place{{Segment: 0, Class: 0, Offset: 23}}
	if adjacent { // rows of 4 and 3 elements
		x.Places[0].Offset, x.Dims[1].Pitch, p.Params[0].Dims[1].Pitch = 7, 7, 7
	}
	if groups {
		p = grouped(p)
	}
	p.Params = append(p.Params, x)
	return p
}

// Parameters that lie side by side have the values that they have one after the other, and the optimizer treats them as
// one span.
func TestParametersSideBySide(t *testing.T) {
	for i := range 4 {
		shard, groups := i%2 > 0, i/2 > 0
		one, other := sideBySide(true, shard, groups), sideBySide(false, shard, groups)
		kinds := []kind{paramKind(one)}
		if !bytes.Equal(saved(t, startInitialized(one), kinds), saved(t, startInitialized(other), kinds)) {
			t.Errorf("shard=%v groups=%v: other initial parameters side by side", shard, groups)
		}
	}
	ts := Of(sideBySide(true, false, false), map[string]int{})
	want := []Span{{3, 38, true, 1, nil}, {38, 45, false, 1, nil}, {45, 80, true, 1, nil}}
	if got := Spans(ts, 0, 96); !slices.Equal(got, want) {
		t.Errorf("spans %v, want %v", got, want)
	}
}

// A copy of the state has what a checkpoint has, and nothing that another rank saves; it stays as it was taken.
func TestStateCopy(t *testing.T) {
	narrow := split(2, 2, nil, []string{"tp"}, true)
	narrow.Types = program.Types{Compute: program.F64, Params: program.BF16, Grads: program.F64, Reduce: program.F64,
		Master: program.F64, Moments: program.F32}
	narrow.Stages[0].Arena.Master = program.Region{Offset: 6144, Size: 1024}
	narrow.Stages[0].Arena.Size += 1024
	all := maps.Clone(splits)
	all["narrow"], all["side by side"] = narrow, sideBySide(true, true, false)
	for name, p := range all {
		c := start(p)
		for _, s := range c.All {
			s.Initialize(9)
			fill := func(k kind) {
				region := k.region(&s.Stage.Arena)
				x := make([]float64, region.Size/k.elem.Size())
				for i := range x {
					x[i] = float64(s.ID*1000 + i)
				}
				Write(s, k.elem, region.Offset, x)
			}
			for _, k := range momentKinds(p) {
				fill(k)
			}
		}
		kinds := append([]kind{weightKind(p)}, momentKinds(p)...)
		want := saved(t, c, kinds)
		taken := c.NewStateCopy()
		bytesTaken := int64(0)
		for i, s := range c.All {
			taken.Take(s, 1+i%2)
			clear(s.Arena)
			bytesTaken += int64(len(taken.All[i].Arena))
		}
		if got := saved(t, &taken.Stores, kinds); !bytes.Equal(got, want) {
			t.Errorf("%s: the copy differs", name)
		}
		mesh := make(comm.Mesh, len(p.Mesh))
		for i, a := range p.Mesh {
			mesh[i] = comm.Axis(a)
		}
		if n := StateCopyBytes(p, mesh); n != bytesTaken || n == 0 {
			t.Errorf("%s: %d bytes, said to be %d", name, bytesTaken, n)
		}
	}
	if n := StateCopyBytes(splits["dp 2"], comm.Mesh{{Name: "tp", Size: 1}, {Name: "dp", Size: 2}}); n != 1024+2*2048 {
		t.Errorf("two replicas without ZeRO copy %d bytes; one of them is enough", n)
	}
}
