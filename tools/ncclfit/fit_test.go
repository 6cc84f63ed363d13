package main

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/planc-dev/planc/costmodel"
)

// The constants in use are the rounded results of the fit, and the page shows this fit.
func TestConstantsAreFitted(t *testing.T) {
	s, err := newStudy()
	if err != nil {
		t.Fatal(err)
	}
	used, fitted := used(), s.fitted
	for i, p := range params {
		if math.Abs(used[i]/fitted[i]-1) > 0.03 {
			t.Errorf("%s: planc has %g, the fit gives %g", p.name, used[i], fitted[i])
		}
	}
	text, err := os.ReadFile("../" + page)
	if err != nil {
		t.Fatal(err)
	}
	now, err := fill(string(text), s.tables())
	if err != nil {
		t.Fatal(err)
	}
	if now != string(text) {
		t.Errorf("%s does not show this fit; run go run ./ncclfit -update", page)
	}
}

// used returns the values of the parameters in costmodel and its catalogue: those that change nothing there.
func used() []float64 {
	k := &costmodel.NCCL
	rate := func(kind, arch string) *costmodel.LinkRate { return find(&model{comm: *k}, kind, arch) }
	latency := func(name string) float64 {
		c, err := costmodel.Resolve(costmodel.Ref{Node: name}, nil, nil)
		if err != nil {
			panic(err)
		}
		return c.Network[0].LatencyUS
	}
	us := func(s costmodel.Seconds) float64 { return float64(s / costmodel.Microsecond) }
	return []float64{us(k.Protocols[costmodel.LL128].Base), us(k.Protocols[costmodel.Simple].Base),
		k.Protocols[costmodel.LL].Hop, k.Protocols[costmodel.Simple].Hop,
		k.Protocols[costmodel.LL].Rate, k.Network, k.Tree, k.Pair, rate("nvlink", "").Ring, rate("nvswitch", "").Ring,
		rate("nvswitch", "sm_9").Ring,
		rate("nvswitch", "sm_10").Ring, rate("pcie", "").Ring, rate("nvswitch", "sm_9").Switch,
		rate("nvswitch", "sm_10").Switch, latency("p4de"), latency("p5")}
}

// Each row of the table is used, held out, or excluded for a reason, and every platform and reason has rows.
func TestEveryRowHasItsPlace(t *testing.T) {
	rows, skipped, err := load(map[string]*costmodel.Cluster{})
	if err != nil {
		t.Fatal(err)
	}
	n := len(rows)
	for _, k := range skipped {
		n += k
	}
	if want := strings.Count(table, "\n") - 1; n != want {
		t.Errorf("%d rows of %d have a place", n, want)
	}
	found := map[*platform]bool{}
	for i := range rows {
		found[rows[i].platform] = true
		if r := &rows[i]; !(r.took > 0) || !(r.bytes > 0) || r.at.Ranks() < 2 {
			t.Errorf("%s: %v bytes over %v take %v", r.name, r.bytes, r.at, r.took)
		}
	}
	for i := range platforms {
		if !found[&platforms[i]] {
			t.Errorf("no row is of %s (%s)", platforms[i].name, platforms[i].gpu)
		}
	}
	for _, u := range unused {
		if skipped[u.why] == 0 {
			t.Errorf("no row is %s", u.gpu)
		}
	}
}
