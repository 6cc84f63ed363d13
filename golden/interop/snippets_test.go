package interop_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop/lightning"
	"github.com/planc-dev/planc/interop/torchtitan"
	"github.com/planc-dev/planc/ir/spec"
)

// snippet is what a written Python file does.
type snippet struct {
	Imports [][2]string
	Calls   map[string][]string
	Sets    []string
}

// parsePython asks Python for what a file does. A file that is no Python fails the test.
func parsePython(t *testing.T, o *oracle, file []byte) (s snippet) {
	t.Helper()
	if refusal := o.ask(t, map[string]any{"python": string(file)}, &s); refusal != "" {
		t.Fatalf("%s\n%s", refusal, file)
	}
	return s
}

// The function for torchtitan 0.3 is Python, calls a function that torchtitan has, and sets fields that it has.
func TestTorchtitanFunctions(t *testing.T) {
	o := startOracle(t, "fields", namesFolder(t))
	var has struct {
		Functions [][2]string
		Fields    []string
	}
	folder := filepath.Join(filepath.Dir(filepath.Dir(os.Getenv("PLANC_ORACLE"))), "torchtitan-0.3")
	if refusal := o.ask(t, map[string]any{"titan": folder}, &has); refusal != "" {
		t.Fatal(refusal)
	}
	r := rand.New(rand.NewPCG(24, 8))
	const plans = 300
	for n := 0; n < plans; {
		d := drawLegal(t, r, jobLimits{engine: "fsdp", families: titanFamilies})
		target := d.target()
		config, err := spec.LoadModel(pick(r, "llama3-8b", "llama3-70b"), nil)
		if err != nil {
			t.Fatal(err)
		}
		job := *target.Job
		job.Config = config // the plan's layers are another model's, which the file does not say with pp 1
		target.Job = &job
		file, err := torchtitan.Function.Write(target)
		if err != nil || d.plan.PP > 1 {
			continue
		}
		n++
		s := parsePython(t, o, file)
		for _, im := range s.Imports {
			if im[0] != "torchtitan.trainer" && !slices.Contains(has.Functions, im) {
				t.Fatalf("torchtitan 0.3 has no %s\n%s", im, file)
			}
		}
		for _, name := range s.Sets {
			path := strings.TrimPrefix(name, "config.")
			if path != "activation_checkpoint" && !slices.Contains(has.Fields, path) {
				t.Fatalf("torchtitan 0.3 has no %s\n%s", path, file)
			}
		}
	}
}

// The written Trainer is Python, and its arguments are those of Lightning.
func TestLightningTrainers(t *testing.T) {
	o := startOracle(t, "fields", namesFolder(t))
	r := rand.New(rand.NewPCG(24, 9))
	const plans = 300
	for n := 0; n < plans; {
		d := drawLegal(t, r, jobLimits{engine: pick(r, "fsdp", "deepspeed"), families: []string{"llama", "gpt2"}})
		file, err := lightning.Format.Write(d.target())
		if err != nil {
			continue
		}
		n++
		for call, keywords := range parsePython(t, o, file).Calls {
			prefix := "trainer."
			if call != "Trainer" {
				prefix = "trainer.strategy.init_args."
			}
			for _, k := range keywords {
				if row, ok := lightning.Keys.Find(prefix + k); !ok || row.Key != prefix+k {
					t.Fatalf("Lightning's %s has no argument %s\n%s", call, k, file)
				}
			}
		}
	}
}
