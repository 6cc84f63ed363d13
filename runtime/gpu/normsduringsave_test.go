//go:build cuda && linux

package gpu

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/driver"
)

// Norms of parameters that are computed while a checkpoint is written do not change what is written.
func TestNormsDuringASave(t *testing.T) {
	if emulate.Skipped() != "" {
		t.Skip(emulate.Skipped())
	}
	k := toy{pp: 2, zero: 1, half: true}
	files := func(during bool) map[string][]byte {
		p := k.due(true)
		p.Settings.Train.Checkpoint = rt.CheckpointSettings{Every: 4, Async: during}
		dir := t.TempDir()
		steps := make(chan int, 100)
		slow := func(d string, m ckpt.Manifest, contents []ckpt.Content) (ckpt.Saved, error) {
			if during {
				time.Sleep(400 * time.Millisecond)
			}
			return ckpt.Save(d, m, contents)
		}
		if _, err := rt.Run(t.Context(), onGPUs(p, images()), rt.Dir(dir), rt.Data(drawn{}),
			rt.Logger(slog.New(slog.DiscardHandler)), rt.ParamNorms(1), func(o *driver.Options) { o.Save = slow },
			rt.OnStep(func(s rt.Step) error { steps <- s.Step; return nil })); err != nil {
			t.Fatal(err)
		}
		paths, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "step-*", "*.safetensors"))
		all := map[string][]byte{}
		for _, path := range paths {
			b, _ := os.ReadFile(path)
			all[strings.TrimPrefix(path, dir)] = b
		}
		return all
	}
	between, during := files(false), files(true)
	for name, b := range between {
		if !bytes.Equal(during[name], b) {
			t.Errorf("%s: differs", name)
		}
	}
}
