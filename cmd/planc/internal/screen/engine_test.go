package screen

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner"
)

// The second line of every screen names the engine that is priced, also if the title is longer than a line.
func TestSecondLineNamesEngine(t *testing.T) {
	for _, name := range []string{"llama3-8b", strings.Repeat("a-name-that-is-long", 4)} {
		d := example()
		d.Engine, d.Model.Name, d.Cluster.Name = "megatron", name, name
		d.Head.rounding = []string{"stochastic rounding"}
		d.WhyNot = &planner.WhyNot{Message: "this is the chosen plan"}
		for what, text := range map[string]string{"plan": Plan(d), "explain": Explain(d),
			"why-not": WhyNot(d)} {
			lines := strings.Split(text, "\n")
			if !strings.HasPrefix(lines[1], "engine megatron") || layout.Width(lines[0]) > layout.ScreenWidth ||
				layout.Width(lines[1]) > layout.ScreenWidth {
				t.Errorf("%s of %s begins with\n%s\n%s", what, name, lines[0], lines[1])
			}
		}
	}
}

// Stages that have different numbers of layers are on the screens, equal ones are not.
func TestUnevenStages(t *testing.T) {
	for _, x := range []struct {
		layers string
		vpp    int
		want   string
	}{{"40,40", 1, ""}, {"80", 1, ""}, {"41,39", 1, "layers 41/39"}, {"7,8,8,8,7", 1, "layers 7/8×3/7"},
		{"0,1,1,0", 2, "layers of chunks 0/1×2/0"}} {
		p := ir.Plan{StageLayers: x.layers, VPP: x.vpp, PP: 2}
		if got := unevenWords(p); got != x.want {
			t.Errorf("%s: %q, want %q", x.layers, got, x.want)
		}
		d := example()
		d.Plan.PP, d.Plan.VPP, d.Plan.StageLayers, d.Plan.Recompute = 2, x.vpp,
			x.layers, "none"
		for _, text := range []string{Plan(d), Explain(d)} {
			if strings.Contains(text, "layers ") != (x.want != "") || !strings.Contains(text, x.want) {
				t.Errorf("%s: %q is not on\n%s", x.layers, x.want, text)
			}
		}
	}
}
