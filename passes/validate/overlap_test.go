package validate

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/passes/search"
)

// What FSDP and Megatron-FSDP may gain by overlap is what published runs gained at most, of those whose ZeRO traffic
// would take more than a fifth of the compute's time: the step's time without overlap over what was measured.
func TestOverlapGainIsThatOfPublishedRuns(t *testing.T) {
	// those with ZeRO 2 and 3 on GPUs that overlap
	files, err := filepath.Glob(filepath.Join("..", "..", "tools", "validate", "rows", "[gmnt]*.csv"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	gains := map[string]float64{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := Parse(filepath.Base(file), data)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range Run(rows).Rows {
			if p.Error == nil || p.Barred || p.Asked.Plan.Zero < 2 || !p.Asked.Problem.Engine.Overlap[1] {
				continue
			}
			apart, problem := *p.Asked.Problem.Engine, *p.Asked.Problem
			apart.Overlap = [2]bool{}
			problem.Engine = &apart
			sequence, err := search.Price(&problem, p.Asked.Plan)
			if err != nil {
				t.Fatal(err)
			}
			moved := sequence.Time.DPComm
			if all := sequence.Time.Total(); moved > 0.2*(all-moved) {
				gains[p.Engine] = max(gains[p.Engine], float64(all) / *p.Measured)
			}
		}
	}
	for _, name := range []string{"fsdp", "megatron"} {
		if want := engines.EngineOf(name).Sharded.Gain; math.Abs(gains[name]-want) > 0.005 {
			t.Errorf("%s gained %.3f at most; the bound is %v", name, gains[name], want)
		}
	}
}
