package costmodel

import (
	"maps"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// A job on the catalogue's cpu has this machine's measured rates, whatever the catalogue's are; what decides its plan
// in a lock is the catalogue's. No other cluster depends on the machine.
func TestResolveOnThisCPU(t *testing.T) {
	here := &ThisCPU{By: "a test", Cores: 16, Single: 0.116, Double: 0.056, Half: 0.2, Memory: 20e9, Link: 15e9,
		LatencyUS: 0.3, Matrix: 0.9, Overhead: 1.5}
	resolve := func(here *ThisCPU, r Ref) *Cluster {
		c, err := ResolveOn(here, r, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, r := range []Ref{{Node: "cpu", Devices: 4}, {Node: "CPU", Count: 4}} {
		plain, own := resolve(nil, r), resolve(here, r)
		if own.Node.Host.Cores != 16 || own.GPU.PeakTFLOPS["f32"] != 4*0.116 || own.GPU.PeakTFLOPS["bf16"] != 4*0.2 ||
			own.GPU.MemoryGiB != plain.GPU.MemoryGiB || own.Node.Devices != 4 {
			t.Errorf("%+v: %+v", r, own)
		}
		was, _ := plain.Device(ir.F32)
		is, ok := own.Device(ir.F32)
		if ratio := float64(was.rate[Matrix] / is.rate[Matrix]); !ok || ratio > 1 || plain.Measured.By != "" {
			t.Errorf("%+v: products at %v, measured at %v", r, was.rate[Matrix], is.rate[Matrix])
		}
		if !maps.Equal(plain.Deciding(), own.Deciding()) {
			t.Errorf("%+v: a lock would have %v, on another machine %v", r, own.Deciding(), plain.Deciding())
		}
	}
	for _, r := range []Ref{{Node: "dgx-h100"}, {Node: "h100", Count: 8}} {
		if c := resolve(here, r); c.Measured.By != "" || c.named != nil {
			t.Errorf("%+v depends on the machine: %+v", r, c.Measured)
		}
	}
	for name, want := range map[string]bool{"cpu": true, "CPU": true, "./cpu": false, "cpu.yaml": false,
		"dgx-h100": false, "": false} {
		if IsThisCPU(name) != want {
			t.Errorf("%q is this CPU: %v", name, !want)
		}
	}
	if c := resolve(&ThisCPU{Cores: 2, Single: 0.1, Double: 0.05, Memory: 1e9, Link: 1e9, LatencyUS: 1, Matrix: 1,
		Overhead: 1}, Ref{Node: "cpu"}); c.GPU.PeakTFLOPS["bf16"] != 0 {
		t.Errorf("bf16 was not measured, and is %v", c.GPU.PeakTFLOPS["bf16"])
	}
	second, err := ClusterFile("cpu")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := ParseCluster("cpu.yaml", second); err != nil || c.GPU.PeakTFLOPS["f32"] != 0.25 {
		t.Errorf("the catalogue has changed: %v, %v", c.GPU.PeakTFLOPS, err)
	}
}
