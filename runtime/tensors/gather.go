package tensors

import (
	"fmt"
	"unsafe"

	"github.com/planc-dev/planc/runtime/launch"
)

// Bytes returns the memory of numbers as bytes.
func Bytes[F Float](x []F) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// broadcastTo broadcasts the first process's numbers.
func broadcastTo[F Float](t *launch.Team, x []F) error {
	if t == nil || t.Peers == nil {
		return nil
	}
	b, err := t.Peers.Broadcast(Bytes(x))
	if err != nil {
		return err
	}
	if !t.IsFirst() && copy(Bytes(x), b) != len(b) {
		return fmt.Errorf("process 0 sent %d bytes of %d numbers", len(b), len(x))
	}
	return nil
}

// slab is rows [from, to) of a logical tensor.
type slab struct{ tensor, from, to int }

// gatherSlab gathers a slab in buf, from the ranks that own parts of it. On other
// processes than the first, buf gets only the parts of their own ranks.
func gatherSlab[F Float](c *Stores, k *kind, parts [][]Tensor, part slab, buf []F) error {
	var sent []byte
	remote := !c.IsAlone()
	for _, r := range c.Mine {
		if t := &parts[r.ID][part.tensor]; k.isSaved(r, t) {
			k.slab(r, t, part.from, part.to, func(at, logical, n int) {
				own := buf[logical:][:n]
				Read(r, k.elem, at, own)
				if remote && !c.Team.IsFirst() {
					sent = append(sent, Bytes(own)...)
				}
			})
		}
	}
	if !remote {
		return nil
	}
	all, err := c.gather(sent)
	if err != nil || !c.Team.IsFirst() {
		return err
	}
	each := len(c.Mine)
	for _, r := range c.All {
		if t, b := &parts[r.ID][part.tensor], &all[r.ID/each]; !c.IsLocal(r.ID) && k.isSaved(r, t) {
			k.slab(r, t, part.from, part.to, func(_, logical, n int) {
				*b = (*b)[copy(Bytes(buf[logical:][:n]), *b):]
			})
		}
	}
	return nil
}
