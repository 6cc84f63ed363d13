//go:build cuda && linux

package gpu

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rt "github.com/planc-dev/planc/runtime"
)

// watched trains with PLANC_CHECK_ARENA set.
func watched(t *testing.T, p *rt.Program) (all []ArenaUse) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "arenas")
	t.Setenv(checkArena, path)
	if _, err := train(t, onGPUs(p, images())); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var use ArenaUse
		if err := json.Unmarshal(line, &use); err != nil {
			t.Fatal(err)
		}
		all = append(all, use)
	}
	return all
}

// A checked arena is written to its end and no further, and a write beyond it is detected.
func TestArenaIsWatched(t *testing.T) {
	for _, share := range []string{"", "1"} {
		t.Setenv(shareGPU, share)
		k := toy{pp: 2, zero: 1}
		all := watched(t, k.program(true))
		if len(all) != 4 {
			t.Errorf("%d ranks tell", len(all))
		}
		for _, use := range all {
			if !use.Whole || use.Planned == 0 || use.Planned-use.Written >= 64 {
				t.Errorf("%+v", use)
			}
		}
		p := k.program(true)
		forward := p.Segments[0].Forward
		p.Segments[0].Forward = func(r *rt.Rank, b *rt.Block) {
			d := deviceOf(r)
			rt.Check(d.compute.stream.Fill(d.fence.whole.At(fenceBytes+d.arena.Bytes+8, 1), 0))
			forward(r, b)
		}
		broken := 0
		for _, use := range watched(t, p) {
			if !use.Whole {
				broken++
			}
		}
		if broken == 0 {
			t.Error("a byte written past the arena is not detected")
		}
	}
}

// If the file cannot be written, the error comes before the first step.
func TestArenaFileCannotBeWritten(t *testing.T) {
	t.Setenv(checkArena, filepath.Join(t.TempDir(), "none", "arenas"))
	if _, err := train(t, onGPUs(toy{pp: 2}.program(true), images())); err == nil ||
		!strings.Contains(err.Error(), checkArena+": open ") {
		t.Error(err)
	}
}
