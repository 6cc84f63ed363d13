package ckpttools

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/ckpt"
)

// Shown is a checkpoint in detail, as --json prints it.
type Shown struct {
	Path     string        `json:"path"`
	Manifest ckpt.Manifest `json:"manifest"`
	Files    []ShownFile   `json:"files"`
}

// ShownFile is a file of a checkpoint.
type ShownFile struct {
	Name    string           `json:"name"`
	Bytes   int64            `json:"bytes"`
	Numbers map[string]int64 `json:"numbers"` // by type
	Tensors []ShownTensor    `json:"tensors"`
}

// ShownTensor is a tensor of a file.
type ShownTensor struct {
	Name  string     `json:"name"`
	Type  ckpt.DType `json:"type"`
	Shape []int64    `json:"shape"`
}

// Show reads a checkpoint, after it is verified. A folder stands for its newest checkpoint.
func Show(_ context.Context, ui *console.Console, args []string) (*Shown, error) {
	c, err := openNamed(ui, args[0])
	if err != nil {
		return nil, err
	}
	s := &Shown{Path: c.Path, Manifest: c.Manifest}
	for _, info := range c.Manifest.Files {
		f, err := c.File(info.Name)
		if err != nil {
			return nil, err
		}
		shown := ShownFile{Name: info.Name, Bytes: info.Size, Numbers: map[string]int64{}}
		for _, t := range f.Tensors() {
			shown.Numbers[string(t.DType)] += t.Elems()
			shown.Tensors = append(shown.Tensors, ShownTensor{t.Name, t.DType, t.Shape})
		}
		f.Close()
		s.Files = append(s.Files, shown)
	}
	return s, nil
}

// Screen formats the result. The hashes of files are left to --json, and so are notes that are wider than a screen.
func (s *Shown) Screen() string {
	m := &s.Manifest
	lines := [][2]string{{"path", s.Path},
		{"step", fmt.Sprintf("%d, %s samples, %s tokens", m.Step, quantity.Count(m.Samples), quantity.Count(m.Tokens))}}
	if m.Updates != m.Step {
		lines = append(lines, [2]string{"updates", fmt.Sprintf("%d; the other steps were skipped", m.Updates)})
	}
	lines = append(lines, [2]string{"plan", m.Plan}, [2]string{"program", m.Program},
		[2]string{"seed", fmt.Sprint(m.Seed)})
	for _, key := range slices.Sorted(maps.Keys(m.Extra)) {
		if value := m.Extra[key]; len(value) < layout.ScreenWidth {
			lines = append(lines, [2]string{key, value})
		}
	}
	for _, f := range s.Files {
		var numbers []string
		for _, kind := range slices.Sorted(maps.Keys(f.Numbers)) {
			numbers = append(numbers, fmt.Sprintf("%s %s", quantity.Count(f.Numbers[kind]), kind))
		}
		lines = append(lines, [2]string{"file", fmt.Sprintf("%s, %s: %s with %s", f.Name, quantity.Bytes(f.Bytes),
			counted(len(f.Tensors), "tensor"), strings.Join(numbers, " and "))})
	}
	width := 0
	for _, l := range lines {
		width = max(width, layout.Width(l[0])+layout.ColumnGap)
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(layout.Prose(layout.Pad(l[0], width), width, l[1]))
	}
	return b.String()
}
