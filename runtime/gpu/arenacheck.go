//go:build cuda && linux

package gpu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/planc-dev/planc/cuda"
)

// checkArena is the variable of the environment that names a file to which each rank adds a line at the end of its run:
// an [ArenaUse]. The arena lies between fences then, and all is filled beforehand, so that it is seen how far it was
// written.
const checkArena = "PLANC_CHECK_ARENA"

// ArenaUse is what a rank has written of its arena.
type ArenaUse struct {
	Rank    int
	Planned int64 // bytes that the compiler laid out
	Written int64 // up to the last byte that is not as it was filled
	Whole   bool  // nothing before or behind it was written
}

// The fences, and what they are filled with: as a number of each type one that no run has.
const (
	fenceBytes = 1 << 20
	fenceByte  = 0x5c
)

// fence surrounds an arena that is watched.
type fence struct {
	told  *os.File // nil where nobody watches
	whole cuda.Memory
}

// takeArena takes the arena's memory, between fences where it is watched.
func (d *device) takeArena(m *machine, bytes int) (err error) {
	path := os.Getenv(checkArena)
	if path == "" {
		d.arena, err = d.arenaMemory(m, bytes)
		return err
	}
	d.fence.told, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("%s: %w", checkArena, err)
	}
	d.fence.whole, err = d.arenaMemory(m, bytes+2*fenceBytes)
	if err != nil {
		return err
	}
	d.arena = d.fence.whole.At(fenceBytes, int64(bytes))
	return errors.Join(d.compute.stream.Fill(d.fence.whole, fenceByte), d.compute.stream.Synchronize())
}

// tellArena adds the rank's line to the file.
func (d *device) tellArena() error {
	use := ArenaUse{Rank: d.rank.ID, Planned: d.arena.Bytes, Whole: true}
	for _, at := range []int64{0, fenceBytes + d.arena.Bytes} {
		n, err := d.written(d.fence.whole.At(at, fenceBytes))
		if err != nil {
			return err
		}
		use.Whole = use.Whole && n == 0
	}
	var err error
	use.Written, err = d.written(d.arena)
	if err != nil {
		return err
	}
	line, err := json.Marshal(use)
	if err != nil {
		return err
	}
	_, err = d.fence.told.Write(append(line, '\n'))
	return err
}

// written is how far memory is not as it was filled, from its beginning.
func (d *device) written(m cuda.Memory) (int64, error) {
	for end := m.Bytes; end > 0; {
		n := min(end, most)
		room := d.staging.At(0, n)
		s := d.compute.stream
		if err := errors.Join(s.Download(room, m.At(end-n, n)), s.Synchronize()); err != nil {
			return 0, err
		}
		if left := len(bytes.TrimRight(room.Slice(), string(rune(fenceByte)))); left > 0 {
			return end - n + int64(left), nil
		}
		end -= n
	}
	return 0, nil
}

// closeArena tells of a watched arena whose run has ended well. Nobody hears a device's errors any more then: a rank
// that could not tell says so on stderr, and is missed by whoever reads the file.
func (d *device) closeArena() {
	if d.fence.told == nil {
		return
	}
	var err error
	if d.compute != nil && !d.failed() {
		err = d.tellArena()
	}
	err = errors.Join(err, d.fence.told.Close())
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: rank %d: %v\n", checkArena, d.rank.ID, err)
	}
}
