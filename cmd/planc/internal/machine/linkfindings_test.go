package machine

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// How GPUs reach each other and other machines is said of each kind of machine, with what its gaps cost.
func TestLinkFindings(t *testing.T) {
	none := func(string, ...string) (string, error) { return "", errors.New("not found") }
	for _, c := range []struct {
		name string
		gpus int
		want []string
	}{
		{"", 0, nil},
		{"nothing", 1, []string{"nvidia-smi missing not on PATH, or it fails: planc detect and planc " +
			"calibrate cannot find out"}},
		{"dgx-h100", 8, []string{"nvidia-smi ok 8 × NVIDIA H100 80GB HBM3: ",
			"peers ok all pairs of GPUs have peer access, over NVSwitch, 450 GB/s per GPU: ",
			"/dev/shm ", "network ok 8 × 400 Gb/s InfiniBand: "}},
		{"rtx-4090", 2, []string{"nvidia-smi ok 2 × NVIDIA GeForce RTX 4090: ",
			"peers missing some pairs of GPUs have no peer access: traffic between GPUs goes through host memory, at " +
				"about 40.0 %", "/dev/shm ",
			"network missing 1 × 10 Gb/s Ethernet: too slow for most training on several nodes"}},
		{"h100-nvl", 1, []string{"nvidia-smi ok 1 × NVIDIA H100 NVL: ", "network missing no active port"}},
	} {
		root, ask := fstest.MapFS{"proc/driver/nvidia/gpus/0000:01:00.0/information": {
			Data: []byte("Model: NVIDIA H200\n")}}, none
		if c.gpus > 0 && c.name != "nothing" {
			root, ask = smiBox(t, c.name)
		}
		got := linkFindings(root, Machine{GPUs: make([]string, c.gpus)}, ask)
		if len(got) != len(c.want) {
			t.Fatalf("%s: %+v", c.name, got)
		}
		for i, f := range got {
			if text := f.Name + " " + f.State + " " + f.Value + ": " + f.Fix; !strings.HasPrefix(text, c.want[i]) {
				t.Errorf("%s: %s\nwant %s", c.name, text, c.want[i])
			}
		}
	}
}

// The shared memory that NCCL needs is judged by its size.
func TestSharedFinding(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		known bool
		want  string
	}{{0, false, "missing not found: "}, {64 << 20, true, "missing 64.0 MiB free: this may be too small for NCCL"},
		{8 << 30, true, "ok 8.0 GiB free: "}} {
		f := sharedFinding(func(string) (int64, bool) { return c.bytes, c.known })
		if text := f.State + " " + f.Value + ": " + f.Fix; !strings.HasPrefix(text, c.want) {
			t.Errorf("%s\nwant %s", text, c.want)
		}
	}
}
