package ckpttools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/runtime/ckpt"
)

// Difference is how two checkpoints differ, as --json prints it.
type Difference struct {
	A        string      `json:"a"`
	B        string      `json:"b"`
	Manifest []Change    `json:"manifest"`
	OnlyA    []string    `json:"only_a"` // tensors, with their file
	OnlyB    []string    `json:"only_b"`
	Tensors  []Deviation `json:"tensors"` // those that differ, the largest relative difference first
	Equal    int         `json:"equal"`   // tensors with the same numbers
}

// Change is a key of the manifest with different values.
type Change struct {
	Key string `json:"key"`
	A   any    `json:"a"`
	B   any    `json:"b"`
}

// Deviation is how the numbers of a tensor differ.
type Deviation struct {
	Name     string  `json:"name"`
	Shapes   string  `json:"shapes,omitempty"` // if they differ, so that the numbers are not compared
	Numbers  int64   `json:"numbers"`          // that differ
	Largest  float64 `json:"largest"`          // difference of two numbers
	Relative float64 `json:"relative"`         // norm of the difference divided by the larger norm of both
}

// Diff compares two checkpoints: their manifests, and their tensors number by number. A folder stands for its newest
// checkpoint.
func Diff(ctx context.Context, ui *console.Console, args []string) (*Difference, error) {
	var both [2]*ckpt.Checkpoint
	for i := range both {
		c, err := openNamed(ui, args[i])
		if err != nil {
			return nil, err
		}
		both[i] = c
	}
	d := &Difference{A: both[0].Path, B: both[1].Path}
	d.Manifest = changes(&both[0].Manifest, &both[1].Manifest)
	defer ui.WatchWork(func() string { return "comparing ..." })()
	err := d.compareFiles(ctx, both[0], both[1])
	slices.SortStableFunc(d.Tensors, func(a, b Deviation) int {
		return cmp.Or(cmp.Compare(b.Shapes, a.Shapes), cmp.Compare(b.Relative, a.Relative))
	})
	return d, err
}

// changes returns the keys of two manifests that differ, without those of files.
func changes(a, b *ckpt.Manifest) (out []Change) {
	from, to := values(a), values(b)
	keys := maps.Clone(from)
	maps.Copy(keys, to)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if from[key] != to[key] {
			out = append(out, Change{key, from[key], to[key]})
		}
	}
	return out
}

// values returns the values of a manifest.
func values(m *ckpt.Manifest) map[string]any {
	text, err := json.Marshal(m)
	if err != nil {
		panic("planc: " + err.Error())
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		panic("planc: " + err.Error())
	}
	delete(all, "files")
	delete(all, "manifest_sha256")
	delete(all, "extra")
	for key, value := range m.Extra {
		all["extra."+key] = value
	}
	return all
}

// compareFiles compares the tensors of all files.
func (d *Difference) compareFiles(ctx context.Context, a, b *ckpt.Checkpoint) error {
	names := map[string]bool{}
	for _, c := range []*ckpt.Checkpoint{a, b} {
		for _, f := range c.Manifest.Files {
			names[f.Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		from, ofA, err := open(a, name)
		if err != nil {
			return err
		}
		defer from.close()
		to, ofB, err := open(b, name)
		if err != nil {
			return err
		}
		defer to.close()
		for _, tensor := range slices.Sorted(maps.Keys(ofA)) {
			if ctx.Err() != nil {
				return errStopped
			}
			if _, ok := ofB[tensor]; !ok {
				d.OnlyA = append(d.OnlyA, name+": "+tensor)
			} else if err := d.compare(name+": "+tensor, from, to, ofA[tensor], ofB[tensor]); err != nil {
				return err
			}
		}
		for _, tensor := range slices.Sorted(maps.Keys(ofB)) {
			if _, ok := ofA[tensor]; !ok {
				d.OnlyB = append(d.OnlyB, name+": "+tensor)
			}
		}
	}
	return nil
}

// tensorFile is a file of tensors; f is nil if the checkpoint does not have it.
type tensorFile struct{ f *ckpt.File }

func (t tensorFile) close() {
	if t.f != nil {
		t.f.Close()
	}
}

// open opens a file and returns its tensors by name. A file that the checkpoint does not have has none.
func open(c *ckpt.Checkpoint, name string) (tensorFile, map[string]ckpt.Tensor, error) {
	if !slices.ContainsFunc(c.Manifest.Files, func(f ckpt.FileInfo) bool { return f.Name == name }) {
		return tensorFile{}, nil, nil
	}
	f, err := c.File(name)
	if err != nil {
		return tensorFile{}, nil, err
	}
	all := map[string]ckpt.Tensor{}
	for _, t := range f.Tensors() {
		all[t.Name] = t
	}
	return tensorFile{f}, all, nil
}

// compare compares a tensor of two files.
func (d *Difference) compare(name string, a, b tensorFile, from, to ckpt.Tensor) error {
	dev := Deviation{Name: name}
	if !slices.Equal(from.Shape, to.Shape) {
		dev.Shapes = fmt.Sprintf("%v and %v", from.Shape, to.Shape)
		d.Tensors = append(d.Tensors, dev)
		return nil
	}
	_, left, err := a.f.Tensor(from.Name)
	if err != nil {
		return err
	}
	_, right, err := b.f.Tensor(to.Name)
	if err != nil {
		return err
	}
	const part = 1 << 18
	x, y := make([]float64, part), make([]float64, part)
	var normA, normB, distance float64
	for at, n := int64(0), from.Elems(); at < n; at += part {
		k := min(part, n-at)
		if err := ckpt.ReadFloats(left, from.DType, at, x[:k]); err != nil {
			return err
		}
		if err := ckpt.ReadFloats(right, to.DType, at, y[:k]); err != nil {
			return err
		}
		for i := range k {
			gap := math.Abs(x[i] - y[i])
			normA, normB, distance = normA+x[i]*x[i], normB+y[i]*y[i], distance+gap*gap
			if gap > 0 {
				dev.Numbers++
				dev.Largest = max(dev.Largest, gap)
			}
		}
	}
	if dev.Numbers == 0 {
		d.Equal++
		return nil
	}
	dev.Relative = math.Sqrt(distance / max(normA, normB))
	d.Tensors = append(d.Tensors, dev)
	return nil
}

// shownTensors is how many tensors a screen shows.
const shownTensors = 20

// Screen formats the result.
func (d *Difference) Screen() string {
	var b strings.Builder
	fmt.Fprintf(&b, "a  %s\nb  %s\n\n", d.A, d.B)
	if len(d.Manifest) > 0 {
		var rows [][]string
		for _, c := range d.Manifest {
			rows = append(rows, []string{c.Key, short(c.A), short(c.B)})
		}
		b.WriteString(layout.Table([]layout.Column{layout.Left("MANIFEST"), layout.Left("A"), layout.Left("B")}, rows))
		b.WriteString("\n")
	}
	for _, only := range []struct {
		label string
		names []string
	}{{"only a", d.OnlyA}, {"only b", d.OnlyB}} {
		for _, name := range only.names {
			fmt.Fprintf(&b, "%s  %s\n", only.label, name)
		}
	}
	fmt.Fprintf(&b, "%d of %s equal\n", d.Equal, counted(d.Equal+len(d.Tensors), "tensor"))
	if len(d.Tensors) == 0 {
		return b.String()
	}
	var rows [][]string
	for _, t := range d.Tensors[:min(shownTensors, len(d.Tensors))] {
		if t.Shapes != "" {
			rows = append(rows, []string{t.Name, "", "", "shapes " + t.Shapes})
			continue
		}
		rows = append(rows, []string{t.Name, fmt.Sprint(t.Numbers), fmt.Sprintf("%.3g", t.Largest),
			fmt.Sprintf("%.3g", t.Relative)})
	}
	b.WriteString("\n" + layout.Table([]layout.Column{layout.LeftUpTo("TENSOR", 44), layout.Right("DIFFERENT"),
		layout.Right("LARGEST"), layout.Left("RELATIVE")}, rows))
	if n := len(d.Tensors) - shownTensors; n > 0 {
		fmt.Fprintf(&b, "and %s; --json has all\n", counted(n, "more tensor"))
	}
	return b.String()
}

// short returns a value of a manifest, cut to a width at which two fit a screen.
func short(value any) string {
	if value == nil {
		return "none"
	}
	if x, ok := value.(float64); ok {
		value = int64(x)
	}
	return layout.Clip(fmt.Sprint(value), 28)
}
