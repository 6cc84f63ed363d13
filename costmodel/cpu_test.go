package costmodel

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// cpuOf is a device of the catalogue's cpu with so many devices.
func cpuOf(t *testing.T, devices int) Device {
	t.Helper()
	c, err := Resolve(Ref{Node: "cpu", Devices: devices}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := c.Device(ir.F32)
	if !ok {
		t.Fatal("the catalogue's cpu does not compute in f32")
	}
	return d
}

// The kernels that the constants were measured by, one at a time on one core, are within a third of what is said of
// them.
func TestCPUKernels(t *testing.T) {
	d := cpuOf(t, 2)
	attention := func(batch, seq, heads, width, flops float64) Op { // flops a score and element of a head
		k := Attention
		if flops > 4 {
			k = AttentionGrad
		}
		return Op{Kind: k, Flops: flops * batch * heads * seq * (seq + 1) / 2 * width,
			Shape: GEMM{M: seq, N: seq, K: width}}
	}
	matmul := func(m, n, k float64) Op { return Op{Kind: Matrix, Flops: 2 * m * n * k, Shape: GEMM{m, n, k, 1}} }
	for _, c := range []struct {
		name string
		op   Op
		us   float64 // measured
	}{
		{"64-cubed", matmul(64, 64, 64), 2.3}, {"256 64 256", matmul(256, 64, 256), 33},
		{"512-cubed", matmul(512, 512, 512), 1089},
		{"768 512 128", matmul(768, 512, 128), 395},
		{"heads of 16, 64 positions", attention(4, 64, 4, 16, 4), 112}, {"heads of 32", attention(12, 64, 4,
			32, 4), 383},
		{"heads of 64", attention(4, 64, 12, 64, 4), 493}, {"256 positions", attention(2, 256, 6, 64, 4), 936},
		{"gradient, heads of 32", attention(12, 64, 4, 32, 10), 485}, {"gradient, 256 positions", attention(2, 256, 6,
			64, 10), 1877},
	} {
		if got := 1e6 * float64(d.Time(&c.op)-d.Launch()); math.Abs(got/c.us-1) > 1.0/3 {
			t.Errorf("%s: %.4g µs, measured %.4g", c.name, got, c.us)
		}
	}
}

// A device that has several cores is faster, by less than their number; one that has half a core takes twice as long.
func TestCPUCores(t *testing.T) {
	op := Op{Kind: Matrix, Flops: 2 * 512 * 512 * 512, Shape: GEMM{512, 512, 512, 1}}
	both, one, half := cpuOf(t, 1), cpuOf(t, 2), cpuOf(t, 4)
	a, b, c := both.Time(&op), one.Time(&op), half.Time(&op)
	if r := float64(b / a); r < 1.7 || r >= 2 {
		t.Errorf("two cores are %v times as fast as one", r)
	}
	if r := float64(c / b); math.Abs(r-2) > 1e-9 {
		t.Errorf("half a core takes %v times as long", r)
	}
}

// GEMMs of bf16 are priced at the rate that a cluster names for them, and at f32's where it names none; all else
// stays.
func TestCPUProductsInBF16(t *testing.T) {
	matmul := Op{Kind: Matrix, Flops: 2 * 512 * 512 * 512, Shape: GEMM{512, 512, 512, 1}}
	norm := Op{Kind: Vector, Flops: 1e8}
	in := func(peaks map[string]float64, precision ir.Elem) Device {
		c, err := Resolve(Ref{Node: "cpu", Devices: 2}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.GPU.PeakTFLOPS = peaks
		d, ok := c.Device(precision)
		if !ok {
			t.Fatalf("no device for %v", precision)
		}
		return d
	}
	single := in(map[string]float64{"f32": 0.25}, ir.F32)
	for _, test := range []struct {
		peaks map[string]float64
		times float64
	}{{map[string]float64{"f32": 0.25}, 1}, {map[string]float64{"f32": 0.25, "bf16": 1}, 4},
		{map[string]float64{"f32": 0.25, "bf16": 0.125}, 0.5}} {
		half := in(test.peaks, ir.BF16)
		if got := float64((single.Time(&matmul) - single.Launch()) / (half.Time(&matmul) - half.Launch())); math.Abs(
			got/test.times-1) > 1e-9 {
			t.Errorf("%v: products are %v times as fast as in f32, not %v", test.peaks, got, test.times)
		}
		if got, want := half.Fastest(), FlopsPerSecond(max(0.25, test.peaks["bf16"])*1e12); got != want {
			t.Errorf("%v: nothing is faster than %v, want %v", test.peaks, got, want)
		}
		if got, want := half.Time(&norm), single.Time(&norm); got != want {
			t.Errorf("%v: a norm takes %v, in f32 %v", test.peaks, got, want)
		}
	}
}
