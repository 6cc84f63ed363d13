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

// checkArena is the environment variable that names a file to which each rank appends an [ArenaUse] at the
// end of its run. The arena is then placed between fences and filled with a known byte, which shows how
// much of it was written.
const checkArena = "PLANC_CHECK_ARENA"

// ArenaUse reports how much of its arena a rank has written.
type ArenaUse struct {
	Rank    int
	Planned int64 // bytes that the compiler laid out
	Written int64 // offset behind the last byte that differs from the filling
	Whole   bool  // nothing in front of or behind the arena was written
}

// The size of a fence, and the byte that fills it. No run writes the number that this byte forms, in any
// type.
const (
	fenceBytes = 1 << 20
	fenceByte  = 0x5c
)

// fence is the memory around an arena whose use is checked.
type fence struct {
	file  *os.File // nil if the arena is not checked
	whole cuda.Memory
}

// fill fills an arena whose use is checked, and the fences.
func (f *fence) fill(d *executor) error {
	if f.file == nil {
		return nil
	}
	return errors.Join(d.compute.stream.Fill(f.whole, fenceByte), d.compute.stream.Synchronize())
}

// allocArena allocates the arena's memory, between fences if its use is checked.
func (d *device) allocArena(m *machine, bytes int) (err error) {
	path := os.Getenv(checkArena)
	if path == "" {
		d.arena, err = d.arenaMemory(m, bytes)
		return err
	}
	d.fence.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("%s: %w", checkArena, err)
	}
	d.fence.whole, err = d.arenaMemory(m, bytes+2*fenceBytes)
	if err != nil {
		return err
	}
	d.arena = d.fence.whole.At(fenceBytes, int64(bytes))
	return nil
}

// writeReport appends the rank's line to the file.
func (f *fence) writeReport(d *executor) error {
	use := ArenaUse{Rank: d.rank.ID, Planned: d.arena.Bytes, Whole: true}
	for _, at := range []int64{0, fenceBytes + d.arena.Bytes} {
		n, err := d.writtenBytes(f.whole.At(at, fenceBytes))
		if err != nil {
			return err
		}
		use.Whole = use.Whole && n == 0
	}
	var err error
	use.Written, err = d.writtenBytes(d.arena)
	if err != nil {
		return err
	}
	line, err := json.Marshal(use)
	if err != nil {
		return err
	}
	_, err = f.file.Write(append(line, '\n'))
	return err
}

// writtenBytes returns the offset behind the last byte of the memory that differs from the filling.
func (d *executor) writtenBytes(m cuda.Memory) (int64, error) {
	for end := m.Bytes; end > 0; {
		n := min(end, stagingBytes)
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

// close reports the use of a checked arena after a successful run. Errors of a device are no longer
// collected at that point: a rank that fails to report prints the error to stderr, and its line is missing
// in the file.
func (f *fence) close(d *executor) {
	if f.file == nil {
		return
	}
	var err error
	if d.compute != nil && !d.failed() {
		err = f.writeReport(d)
	}
	err = errors.Join(err, f.file.Close())
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: rank %d: %v\n", checkArena, d.rank.ID, err)
	}
}
