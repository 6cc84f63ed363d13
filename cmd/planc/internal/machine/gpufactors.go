package machine

import (
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/runtime/amount"
	"github.com/planc-dev/planc/runtime/gpu/measure"
)

// GPUFactors returns the factors by which a cluster is faster than its figures predict. It sets the host bandwidth of
// the cluster to the measured value.
func GPUFactors(c *costmodel.Cluster, m *measure.Measurement) (f costmodel.Measured) {
	for _, kind := range []struct {
		to  *float64
		ofs []string
	}{{&f.Matrix, []string{measure.OfGEMM}}, {&f.FP8, []string{measure.OfFP8}},
		{&f.Attention, []string{measure.OfAttention, measure.OfAttentionGrad}},
		{&f.Memory, []string{measure.OfCopy}},
		{&f.Link, []string{measure.OfAllReduce, measure.OfAllGather, measure.OfReduceScatter, measure.OfAllToAll}},
		{&f.Overhead, []string{measure.OfReplay}}} {
		var mean average
		for _, of := range kind.ofs {
			mean.add(c, m, of)
		}
		if v := mean.value(); v > 0 && kind.to == &f.Overhead {
			*kind.to = 1 / v // a ratio of times, not of rates
		} else {
			*kind.to = v
		}
		*kind.to = bounded(*kind.to)
	}
	f.Collectives = collectiveTable(m)
	up, down := hostRate(m, measure.OfUpload), hostRate(m, measure.OfDownload)
	if slower := min(up, down); slower > 0 {
		c.Node.Host.Bandwidth = max(round(slower), 1e8)
		c.Source["node.host.bandwidth"] = fmt.Sprintf("planc calibrate: pinned memory, all GPUs at once: host to "+
			"device %s GB/s, device to host %s GB/s", figure(float64(up)/1e9), figure(float64(down)/1e9))
	}
	return f
}

// collectiveTable returns the measured times of collectives by message size and group size, in the format of a cluster
// file. Groups with only one measured size are left out.
func collectiveTable(m *measure.Measurement) costmodel.CollectiveTable {
	type group struct {
		kind  string
		ranks int
	}
	sizes := map[group]map[int64]bool{}
	for i := range m.Points {
		p := &m.Points[i]
		at := group{p.Of, p.Ranks}
		if sizes[at] == nil {
			sizes[at] = map[int64]bool{}
		}
		if p.Seconds > 0 {
			sizes[at][p.Bytes] = true
		}
	}
	var rows []string
	for i := range m.Points {
		p := &m.Points[i]
		if _, priced := opsOfPoints[p.Of]; priced && p.Seconds > 0 && len(sizes[group{p.Of, p.Ranks}]) > 1 {
			rows = append(rows, fmt.Sprintf("%s %d %d %s", p.Of, p.Ranks, p.Bytes, amount.Digits(1e6*p.Seconds, 4)))
		}
	}
	return costmodel.CollectiveTable(strings.Join(rows, "; "))
}

// bounded clamps a factor to the range that cluster files accept; 0 stays 0.
func bounded(v float64) float64 {
	if v == 0 {
		return 0
	}
	return min(max(v, 0.01), 100)
}

// average accumulates the geometric mean of predicted over measured times.
type average struct {
	sum float64
	n   int
}

func (a *average) value() float64 {
	if a.n == 0 {
		return 0
	}
	return math.Exp(a.sum / float64(a.n))
}

// add adds the points of a kind that are large, see [predictedPoint]; if there are none, it adds the last point, which
// is the largest.
func (a *average) add(c *costmodel.Cluster, m *measure.Measurement, kind string) {
	var best float64
	n := a.n
	for i := range m.Points {
		p := &m.Points[i]
		if p.Of != kind || p.Seconds <= 0 {
			continue
		}
		predicted, large := predictedPoint(c, p)
		if predicted <= 0 {
			continue
		}
		best = predicted / p.Seconds
		if large {
			a.sum, a.n = a.sum+math.Log(best), a.n+1
		}
	}
	if a.n == n && best > 0 {
		a.sum, a.n = a.sum+math.Log(best), a.n+1
	}
}

// hostRate returns the bandwidth of the fastest copy of a kind.
func hostRate(m *measure.Measurement, kind string) (rate costmodel.BytesPerSecond) {
	for i := range m.Points {
		if p := &m.Points[i]; p.Of == kind && p.Seconds > 0 {
			rate = max(rate, costmodel.BytesPerSecond(float64(p.Bytes)/p.Seconds))
		}
	}
	return rate
}
