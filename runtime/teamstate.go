package runtime

import (
	"encoding/json"
	"fmt"
	"io"
	"unsafe"

	"github.com/planc-dev/planc/runtime/ckpt"
)

// State of a run on several processes: the first one reads and writes checkpoints, and tensors travel between it and
// the ranks that have them, a slab at a time, so that no node needs the others' memory or the first one's disk.

// origin is where a run begins, as the first process has found it.
type origin struct {
	Fresh    bool
	Path     string
	Away     bool // from the run's folder
	Manifest ckpt.Manifest
}

// origin tells all processes which checkpoint is continued, nil for none, and whether it lies away from the run's
// folder.
func (t *Team) origin(c *ckpt.Checkpoint, away bool) (*ckpt.Checkpoint, bool, error) {
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
	if err != nil || t.isFirst() {
		return c, away, err
	}
	if err := json.Unmarshal(b, &from); err != nil {
		return nil, false, fmt.Errorf("what process 0 tells of its checkpoint: %w", err)
	}
	if from.Fresh {
		return nil, false, nil
	}
	return &ckpt.Checkpoint{Path: from.Path, Manifest: from.Manifest}, from.Away, nil
}

// text brings the first process's text to all.
func (t *Team) text(s string) (string, error) {
	if t.Peers == nil {
		return s, nil
	}
	b, err := t.Peers.Broadcast([]byte(s))
	return string(b), err
}

// store saves a checkpoint; processes but the first bring their ranks' part of it.
func (r *run) store(m ckpt.Manifest) (path string, err error) {
	contents := r.contents()
	if r.team.isFirst() {
		var saved ckpt.Saved
		saved, err = ckpt.Save(r.ckptDir, m, contents)
		if saved.Aside != "" {
			r.warnAside(saved.Aside)
		}
		path = saved.Path
	} else {
		err = discardContents(contents)
	}
	if err != nil {
		return "", err
	}
	return r.team.text(path)
}

// discardContents does with contents what saving does.
func discardContents(contents []ckpt.Content) error {
	for i := range contents {
		for j := range contents[i].Tensors {
			if err := contents[i].Fill(j, io.Discard); err != nil {
				return err
			}
		}
	}
	return nil
}

// bytesOf is the memory of numbers.
func bytesOf[F Float](x []F) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// broadcastTo brings the first process's numbers to all.
func broadcastTo[F Float](t *Team, x []F) error {
	if t == nil || t.Peers == nil {
		return nil
	}
	b, err := t.Peers.Broadcast(bytesOf(x))
	if err != nil {
		return err
	}
	if !t.isFirst() && copy(bytesOf(x), b) != len(b) {
		return fmt.Errorf("process 0 sent %d bytes of %d numbers", len(b), len(x))
	}
	return nil
}

// gatherSlab is rows [from, to) of a logical tensor, joined in buf from the ranks that own parts of it; on processes
// but the first, from those that are there.
func gatherSlab[F Float](c *crew, k *kind, parts [][]tensor, i, from, to int, buf []F) error {
	var sent []byte
	remote := c.team != nil && c.team.Peers != nil
	for _, r := range c.mine {
		if t := &parts[r.ID][i]; k.isSaved(r, t) {
			k.slab(r, t, from, to, func(at, logical, n int) {
				part := buf[logical:][:n]
				read(r, k.elem, at, part)
				if remote && !c.team.isFirst() {
					sent = append(sent, bytesOf(part)...)
				}
			})
		}
	}
	if !remote {
		return nil
	}
	all, err := c.team.Peers.Gather(sent)
	if err != nil || !c.team.isFirst() {
		return err
	}
	each := len(c.mine)
	for _, r := range c.ranks {
		if t, b := &parts[r.ID][i], &all[r.ID/each]; !c.isLocal(r) && k.isSaved(r, t) {
			k.slab(r, t, from, to, func(_, logical, n int) {
				*b = (*b)[copy(bytesOf(buf[logical:][:n]), *b):]
			})
		}
	}
	return nil
}
