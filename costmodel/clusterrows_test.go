package costmodel

import (
	"maps"
	"testing"
)

// What a plan may depend on is among the deciding figures, and what it does not is not.
func TestDeciding(t *testing.T) {
	get := func(change func(*Cluster)) map[string]string {
		c, err := Resolve(Ref{Node: "dgx-h100", Nodes: 4}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(c)
		}
		return c.Deciding()
	}
	base := get(nil)
	for key, want := range map[string]string{"name": "dgx-h100", "nodes": "4", "node.devices": "8",
		"node.link.kind": "nvswitch", "gpu.arch": "sm_90a"} {
		if base[key] != want {
			t.Errorf("%s is %q, want %q in %v", key, base[key], want, base)
		}
	}
	for name, c := range map[string]struct {
		decides bool
		change  func(*Cluster)
	}{
		"price":   {false, func(c *Cluster) { c.Node.PricePerHour++ }},
		"watts":   {false, func(c *Cluster) { c.GPU.Watts++ }},
		"source":  {false, func(c *Cluster) { c.Source = map[string]string{"a": "b"} }},
		"by":      {false, func(c *Cluster) { c.Measured.By = "me" }},
		"memory":  {true, func(c *Cluster) { c.GPU.MemoryGiB++ }},
		"peak":    {true, func(c *Cluster) { c.GPU.PeakTFLOPS["bf16"]++ }},
		"link":    {true, func(c *Cluster) { c.Node.Link.Bandwidth++ }},
		"network": {true, func(c *Cluster) { c.Network[0].LatencyUS++ }},
		"nodes":   {true, func(c *Cluster) { c.Nodes++ }},
	} {
		if got := !maps.Equal(base, get(c.change)); got != c.decides {
			t.Errorf("another %s decides: %v, want %v", name, got, c.decides)
		}
	}
}
