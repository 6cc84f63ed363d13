package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/tensors"
)

// State of a run on several processes: only the first process reads and writes checkpoints. Tensors travel between it
// and the ranks in slabs, so that no machine needs the others' memory or the first one's disk.

// origin is the checkpoint with which a run begins, as the first process has chosen it.
type origin struct {
	Fresh    bool
	Path     string
	Away     bool // the checkpoint is outside of the run's folder
	Manifest ckpt.Manifest
}

// shareOrigin broadcasts which checkpoint is continued, nil for none, and whether it is outside of the run's folder.
func shareOrigin(t *launch.Team, c *ckpt.Checkpoint, away bool) (*ckpt.Checkpoint, bool, error) {
	if t.Peers == nil {
		return c, away, nil
	}
	from := origin{Fresh: c == nil, Away: away}
	if c != nil {
		from.Path, from.Manifest = c.Path, c.Manifest
	}
	b, err := json.Marshal(from)
	if err != nil {
		return nil, false, err
	}
	b, err = t.Peers.Broadcast(b)
	if err != nil || t.IsFirst() {
		return c, away, err
	}
	if err := json.Unmarshal(b, &from); err != nil {
		return nil, false, fmt.Errorf("cannot read process 0's message about its checkpoint: %w", err)
	}
	if from.Fresh {
		return nil, false, nil
	}
	return &ckpt.Checkpoint{Path: from.Path, Manifest: from.Manifest}, from.Away, nil
}

// store writes a checkpoint of the stores. The other processes send their ranks' part of it to the first, which returns
// after it has received all parts, even if it cannot write them: the next checkpoint's parts then follow.
func (r *saver) store(m ckpt.Manifest, stores *tensors.Stores) (saved ckpt.Saved, err error) {
	from := *stores
	from.InBackground = r.team.Peers != nil
	contents := from.Contents()
	if !r.team.IsFirst() {
		return saved, discardContents(contents, 0)
	}
	save := ckpt.Save
	if r.o.Save != nil {
		save = r.o.Save
	}
	filled := 0
	for i := range contents {
		fill := contents[i].Fill
		contents[i].Fill = func(j int, w io.Writer) error {
			filled++
			return fill(j, w)
		}
	}
	saved, err = save(r.ckptDir, m, contents)
	if err != nil && !from.IsAlone() {
		_ = discardContents(contents, filled) // fails if another process does, which ends the run
	}
	return saved, err
}

// discardContents calls Fill as saving does, except for the first tensors, so that this process sends or receives their
// parts. The first process finds numbers that are not finite.
func discardContents(contents []ckpt.Content, first int) error {
	for i := range contents {
		c := &contents[i]
		from := min(first, len(c.Tensors))
		first -= from
		for j := from; j < len(c.Tensors); j++ {
			err := c.Fill(j, io.Discard)
			if bad := (*ckpt.NonfiniteError)(nil); err != nil && !errors.As(err, &bad) {
				return err
			}
		}
	}
	return nil
}
