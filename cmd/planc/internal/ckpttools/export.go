package ckpttools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/tensors"
)

// Export says how a checkpoint is written as a Hugging Face model.
type Export struct {
	Out       string
	Type      string // of tensors.ExportTypes; "": that of the checkpoint
	ShardSize string // such as 5GB
}

// Exported is what Export wrote.
type Exported struct {
	Path    string `json:"path"` // of the checkpoint
	Step    int64  `json:"step"`
	Family  string `json:"family"`
	Out     string `json:"out"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"` // of the tensors
}

// Run exports a checkpoint. A folder stands for its newest checkpoint.
func (e *Export) Run(ctx context.Context, ui *console.Console, dir string) (*Exported, error) {
	limit, err := e.check()
	if err != nil {
		return nil, err
	}
	c, err := openNamed(ui, dir)
	if err != nil {
		return nil, err
	}
	w, err := tensors.LoadWeights(c.Manifest.Extra)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return nil, flagError("%s does not say where its tensors are in Hugging Face's files: an older planc saved "+
			"it, or its model has no such files; use the training binary: ./train --resume %[1]s --export %s", c.Path,
			e.Out)
	}
	f, err := c.File(tensors.ModelFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := tensors.PublishedFile(f, w)
	if err != nil {
		return nil, err
	}
	content, config := tensors.Exported(content, w.Config, e.Type)
	out := &Exported{Path: c.Path, Step: c.Manifest.Step, Family: w.Family, Out: e.Out, Tensors: len(content.Tensors)}
	for _, t := range content.Tensors {
		out.Bytes += t.Bytes()
	}
	fill := content.Fill
	content.Fill = func(i int, w io.Writer) error {
		if ctx.Err() != nil {
			return errStopped
		}
		return fill(i, w)
	}
	defer ui.WatchWork(func() string { return "writing " + e.Out + " ..." })()
	return out, ckpt.Export(e.Out, content, limit, map[string][]byte{"config.json": config})
}

// check checks the flags and returns the limit of a file in bytes.
func (e *Export) check() (limit int64, err error) {
	if e.Out == "" {
		return 0, flagError("planc checkpoint export needs -o NEWDIR, the folder of the model")
	}
	if _, ok := tensors.ExportTypes[e.Type]; !ok && e.Type != "" {
		return 0, flagError("--dtype %s: must be %s; without the flag, tensors have the type of the checkpoint", e.Type,
			strings.Join(slices.Sorted(maps.Keys(tensors.ExportTypes)), ", "))
	}
	limit, err = parseSize(e.ShardSize)
	if err != nil {
		return 0, flagError("--shard-size %s: %v", e.ShardSize, err)
	}
	return limit, ckpt.Vacant(e.Out)
}

// sizes are the units that Hugging Face's max_shard_size has.
var sizes = []struct {
	unit  string
	bytes float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
	{"TB", 1e12}}

// parseSize parses a number of bytes with a unit.
func parseSize(text string) (int64, error) {
	for _, s := range sizes {
		digits, ok := strings.CutSuffix(strings.ToUpper(text), strings.ToUpper(s.unit))
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !(n*s.bytes >= 1 && n*s.bytes <= 1e18) {
			break
		}
		return int64(n * s.bytes), nil
	}
	return 0, errors.New("must be a positive number with a unit, such as 5GB, 500MB or 2GiB")
}

// Screen formats the result.
func (e *Exported) Screen() string {
	return fmt.Sprintf("step %d of %s, as %s, to %s: %s, %s\n", e.Step, e.Path, e.Family, e.Out,
		counted(e.Tensors, "tensor"), quantity.Bytes(e.Bytes))
}
