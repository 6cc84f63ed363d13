package main

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/optimize"

	"github.com/planc-dev/planc/costmodel"
)

// model is what is fitted: the constants of a library, and latencies of networks.
type model struct {
	comm   costmodel.Comm
	p4, p5 float64 // µs: EFA of the first and second generation
}

// param is a constant that is fitted, with the start of the search and its bounds.
type param struct {
	name  string
	begin float64
	least float64
	most  float64
	set   func(m *model, v float64)
}

// params are all fitted constants. The others follow from how a protocol works: LL128's rate is 120 of 128 bytes, and
// its hop is the unit. Filling a pipeline once with chunks of the best size costs √(α·βb).
var params = []param{
	{"LL, LL128: base µs", 13, 1, 1e3, func(m *model, v float64) {
		m.comm.Protocols[costmodel.LL].Base = costmodel.Seconds(v) * costmodel.Microsecond
		m.comm.Protocols[costmodel.LL128].Base = costmodel.Seconds(v) * costmodel.Microsecond
	}},
	{"Simple: base µs", 50, 1, 1e3, func(m *model, v float64) {
		m.comm.Protocols[costmodel.Simple].Base = costmodel.Seconds(v) * costmodel.Microsecond
	}},
	{"LL: latencies per hop", 0.55, 0.1, 1, func(m *model, v float64) { m.comm.Protocols[costmodel.LL].Hop = v }},
	{"Simple: latencies per hop", 1.2, 1, 10, func(m *model, v float64) { m.comm.Protocols[costmodel.Simple].Hop = v }},
	{"LL: fraction of the bandwidth", 0.12, 0.01, 0.5, func(m *model, v float64) {
		m.comm.Protocols[costmodel.LL].Rate = v
	}},
	{"network: fraction of the NICs' bandwidth", 0.96, 0.1, 1, func(m *model, v float64) { m.comm.Network = v }},
	{"trees: fraction of the rings' bandwidth", 0.93, 0.1, 1, func(m *model, v float64) { m.comm.Tree = v }},
	{"pairs: fraction of the rings' bandwidth", 0.9, 0.1, 1, func(m *model, v float64) { m.comm.Pair = v }},
	{"NVLink2 mesh: fraction, rings", 0.95, 0.1, 1, link("nvlink", "")},
	{"NVLink3 switch: fraction, rings", 0.82, 0.1, 1, link("nvswitch", "")},
	{"NVLink4 switch: fraction, rings", 0.86, 0.1, 1, link("nvswitch", "sm_9")},
	{"NVLink5 switch: fraction, rings", 0.95, 0.1, 1, link("nvswitch", "sm_10")},
	{"PCIe: fraction, rings", 0.78, 0.1, 1, link("pcie", "")},
	{"NVLink4 switch: fraction, NVLS", 0.65, 0.1, 1, switches("sm_9")},
	{"NVLink5 switch: fraction, NVLS", 0.4, 0.1, 1, switches("sm_10")},
	{"EFA of p4d, p4de: latency µs", 113, 1, 1e3, func(m *model, v float64) { m.p4 = v }},
	{"EFA of p5, p5en: latency µs", 38, 1, 1e3, func(m *model, v float64) { m.p5 = v }},
}

func find(m *model, kind, arch string) *costmodel.LinkRate {
	for i := range m.comm.Links {
		if l := &m.comm.Links[i]; l.Kind == kind && l.Arch == arch {
			return l
		}
	}
	panic("ncclfit: costmodel.NCCL has no link " + kind + " " + arch)
}

func link(kind, arch string) func(*model, float64) {
	return func(m *model, v float64) { find(m, kind, arch).Ring = v }
}

func switches(arch string) func(*model, float64) {
	return func(m *model, v float64) { find(m, "nvswitch", arch).Switch = v }
}

// values returns the parameters of a vector of the search, which holds their logarithms.
func values(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, p := range params {
		out[i] = max(p.least, min(p.most, math.Exp(x[i])))
	}
	return out
}

// with returns the model with these values.
func with(v []float64) *model {
	m := &model{comm: costmodel.NCCL}
	m.comm.Links = append([]costmodel.LinkRate(nil), costmodel.NCCL.Links...)
	for i, p := range params {
		p.set(m, v[i])
	}
	return m
}

// problem is the data of a fit.
type problem struct {
	clusters map[string]*costmodel.Cluster
	rows     []row
	weight   map[string]float64 // of a row, by platform, so that platforms have equal weight
}

func newProblem(clusters map[string]*costmodel.Cluster, rows []row, without string) *problem {
	p := &problem{clusters: clusters, weight: map[string]float64{}}
	count := map[string]int{}
	for _, r := range rows {
		if r.held == "" && r.name != without {
			p.rows = append(p.rows, r)
			count[r.name]++
		}
	}
	for name, n := range count {
		p.weight[name] = 1 / float64(n)
	}
	return p
}

// set writes the model's latencies into the clusters.
func (m *model) set(clusters map[string]*costmodel.Cluster) {
	for _, c := range clusters {
		switch c.Name {
		case "p4d", "p4de":
			c.Network[0].LatencyUS = m.p4
		case "p5", "p5en":
			c.Network[0].LatencyUS = m.p5
		}
	}
}

// off returns the logarithm of predicted over measured.
func (m *model) off(clusters map[string]*costmodel.Cluster, r *row) float64 {
	route := m.comm.Route(clusters[r.key()], r.op, r.at)
	return math.Log(float64(route.Time(r.bytes) / r.took))
}

const (
	outlier = 0.3  // logarithm beyond which the loss of a row is linear, not quadratic (Huber)
	pull    = 0.01 // towards the start, so that constants which the rows do not determine stay there
)

// loss returns the value that the fit minimizes.
func (p *problem) loss(x []float64) float64 {
	m := with(values(x))
	m.set(p.clusters)
	sum := 0.0
	for i := range p.rows {
		e := math.Abs(m.off(p.clusters, &p.rows[i]))
		if e > outlier {
			e = math.Sqrt(outlier * (2*e - outlier))
		}
		sum += p.weight[p.rows[i].name] * e * e
	}
	for i, q := range params {
		d := x[i] - math.Log(q.begin)
		sum += pull * d * d
	}
	return sum
}

// fit searches from the start. When the simplex has shrunk, the search starts again from its end.
func (p *problem) fit() ([]float64, error) {
	x := make([]float64, len(params))
	for i, q := range params {
		x[i] = math.Log(q.begin)
	}
	best := math.Inf(1)
	for range 15 {
		r, err := optimize.Minimize(optimize.Problem{Func: p.loss}, x, &optimize.Settings{FuncEvaluations: 5000,
			Concurrent: 1},
			&optimize.NelderMead{SimplexSize: 0.2})
		if err != nil {
			return nil, fmt.Errorf("fit: %w", err)
		}
		x = r.X
		if r.F > best*(1-1e-4) {
			break
		}
		best = r.F
	}
	return values(x), nil
}
