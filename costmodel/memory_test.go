package costmodel

import (
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// As many sequences as fit have the gradients of their scores in the workspace.
func TestAttentionWorkspace(t *testing.T) {
	gpt2 := ir.LibraryAttention{Seq: 1024, KSeq: 1024, Heads: 12, Group: 1, Dim: 64}
	for _, c := range []struct {
		change    func(a *ir.LibraryAttention)
		sequences int
		want      int64
	}{
		{func(*ir.LibraryAttention) {}, 32, 192 << 20}, // 8 of 32
		{func(*ir.LibraryAttention) {}, 4, 96 << 20},
		{func(a *ir.LibraryAttention) { a.KSeq = 2048 }, 4, 192 << 20},
		{func(a *ir.LibraryAttention) { a.Heads, a.Group = 2, 4 }, 1, 16 << 20},
		{func(a *ir.LibraryAttention) { a.Seq, a.KSeq = 4096, 4096 }, 4, 0}, // 384 MiB a sequence
		{func(a *ir.LibraryAttention) { a.Dim = 136 }, 4, 0},
		{func(a *ir.LibraryAttention) { a.Dim = 60 }, 4, 0},
	} {
		a := gpt2
		c.change(&a)
		if got := AttentionWorkspace(a, c.sequences); got != c.want {
			t.Errorf("%+v of %d sequences: %d MiB, want %d", a, c.sequences, got>>20, c.want>>20)
		}
	}
}

// Sizes that the runtime chooses are those of its sources. Those compile for CUDA only, and import no cost model.
func TestSizesAreTheRuntimes(t *testing.T) {
	for _, c := range []struct {
		file, pattern string
		want          int64
	}{
		{"../cuda/cudnnparts.go", `\nconst MaxAttentionWorkspace = (.*)\n`, maxAttentionWorkspace},
		{"../cuda/cudnnattention.go", `x\.Dim > (\d+) \{`, maxAttentionDim},
		{"../cuda/cudnnattention.go", `x\.Dim%(\d+) != 0`, attentionDims},
		{"../cuda/blaslt.go", `\nconst GEMMWorkspace = (.*)\n`, gemmWorkspace},
		{"../runtime/gpu/memory.go", `\ttableBytes = ([^/]*)//`, tableBytes},
		{"../runtime/gpu/memory.go", `\tsumBytes   = ([^/]*)//`, sumBytes},
	} {
		text, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(c.pattern).FindSubmatch(text)
		if found == nil {
			t.Errorf("%s has nothing like %s", c.file, c.pattern)
			continue
		}
		v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, string(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := constant.Int64Val(v.Value); got != c.want {
			t.Errorf("%s: %s is %d, the cost model has %d", c.file, c.pattern, got, c.want)
		}
	}
}
