package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/machine"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// smallJob is a job on this machine's CPU whose fastest plan depends on how fast ranks exchange data.
const smallJob = `model: {model_type: gpt2, vocab_size: 256, n_positions: 64, n_embd: 64, n_layer: 4, n_head: 4}
train: {seq_len: 32, global_batch: 8, precision: f32, steps: 10}
data: {train: x.txt}
cluster: 4xcpu
`

// measurements are two that choose other plans than the catalogue's rates do, and none.
func measurements() map[string]*costmodel.ThisCPU {
	cores := machine.Inspect(os.DirFS("/")).Cores
	return map[string]*costmodel.ThisCPU{
		"none": nil,
		"slow": {By: "a test", Cores: cores, Single: 0.001, Double: 0.0005, Memory: 1e9, Link: 1e12,
			LatencyUS: 0.001, Matrix: 1, Overhead: 1},
		"slow link": {By: "a test", Cores: cores, Single: 10, Double: 5, Memory: 1e12, Link: 1e5, LatencyUS: 1,
			Matrix: 1, Overhead: 1},
	}
}

// onMeasured makes a machine of which this was measured: a cache and a folder of its own.
func onMeasured(t *testing.T, c *costmodel.ThisCPU) (job string) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(noMeasureVariable, "")
	if c == nil {
		t.Setenv(noMeasureVariable, "1")
	} else if saved := machine.SaveCPU(machine.Inspect(os.DirFS("/")), c); saved.Err != nil {
		t.Fatal(saved.Err)
	}
	job = filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(job, []byte(smallJob), 0o666); err != nil {
		t.Fatal(err)
	}
	return job
}

// must is what a command prints and says, if it ends with 0.
func must(t *testing.T, args ...string) (screen, output string) {
	t.Helper()
	var out, errs strings.Builder
	if code := run(args, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("planc %v: exit %d\n%s%s", args, code, out.String(), errs.String())
	}
	return out.String(), progressLine.ReplaceAllString(errs.String(), "")
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Locks and generated code are the same bytes whatever was measured of the machine, so that verify holds on another
// one. Each way to write them is tried, and each lock and file of one machine is verified on the others.
func TestMeasurementDecidesNoLock(t *testing.T) {
	ways := map[string][]string{"gen": {"gen"}, "gen after plan": {"plan --update", "gen"}, "plan": {"plan --update"}}
	files := map[string]string{} // by way and name: of the first machine
	for machine, measured := range measurements() {
		for way, commands := range ways {
			job := onMeasured(t, measured)
			for _, c := range commands {
				words := strings.Fields(c)
				must(t, append([]string{words[0], job}, words[1:]...)...)
			}
			for _, name := range []string{"small.lock", "small_planc.go"} {
				path := filepath.Join(filepath.Dir(job), name)
				if missing(path) && way == "plan" {
					continue
				}
				key, text := way+": "+name, fileText(t, path)
				if want, ok := files[key]; ok && text != want {
					t.Errorf("%s: %s differs between machines", machine, key)
				}
				files[key] = text
			}
		}
	}
	for machine, measured := range measurements() {
		job := onMeasured(t, measured)
		for _, name := range []string{"small.lock", "small_planc.go"} {
			if err := os.WriteFile(filepath.Join(filepath.Dir(job), name), []byte(files["gen: "+name]),
				0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, output := must(t, "verify", job); !strings.HasPrefix(output, "verified ") {
			t.Errorf("%s: verify says %q", machine, output)
		}
		must(t, "gen", job, "--locked")
		must(t, "plan", job, "--locked")
	}
	if !strings.Contains(files["gen: small_planc.go"], "rt.Predict{") {
		t.Error("the generated code has no prediction")
	}
}

// Screens show the plan that a lock would hold, at the measured rates, and say if another one would be faster at those.
func TestScreenShowsPlanOfLocks(t *testing.T) {
	plan := regexp.MustCompile(`(?m)^PLAN .*$`)
	catalogue, _ := must(t, "plan", onMeasured(t, nil))
	job := onMeasured(t, measurements()["slow link"])
	own, output := must(t, "plan", job)
	if a, b := plan.FindString(own), plan.FindString(catalogue); a != b || a == "" || own == catalogue {
		t.Errorf("the plan is %q, and by the catalogue %q", a, b)
	}
	want := regexp.MustCompile(`^note: at the rates measured here, .+ would be [0-9.]+ % faster; the plan shown is ` +
		`the one for locks and generated code, which is the same on every machine; to choose another plan, pin it ` +
		`in the job's plan section\n$`)
	if !want.MatchString(output) {
		t.Errorf("plan says %q", output)
	}
	must(t, "plan", job, "--update")
	if locked, output := must(t, "plan", job); plan.FindString(locked) != plan.FindString(catalogue) ||
		!want.MatchString(output) {
		t.Errorf("with a lock plan says %q and prints\n%s", output, locked)
	}
}

// The code of planc run expects of a step what this machine was measured at; that of compile, which may run anywhere,
// what the catalogue has.
func TestRunExpectsMeasuredSteps(t *testing.T) {
	steps := map[string]float64{}
	for machine, measured := range measurements() {
		job := onMeasured(t, measured)
		a := &app{Console: console.New(nil, new(strings.Builder), new(strings.Builder), true)}
		var flags jobFlags
		flags.register(&cobra.Command{})
		for command, load := range map[string]func(*console.Console, []string, jobFlags) (*loaded, error){
			"run": loadJobHere, "compile": loadJob} {
			j, err := load(a.Console, []string{job}, flags)
			if err != nil {
				t.Fatal(err)
			}
			d, err := decidePlan(a, j.atCatalogueRates(), lockFlags{})
			if err != nil {
				t.Fatal(err)
			}
			d, err = j.withLocalExpectation(d)
			if err != nil {
				t.Fatal(err)
			}
			steps[command+" "+machine] = float64(d.expect.StepS)
			if got := input(d, mustProgram(t, a.Console, d), form{}).Predict.Measured; got !=
				(command == "run" && measured != nil) {
				t.Errorf("%s of %s: measured is %v", command, machine, got)
			}
		}
	}
	step := func(key string) float64 { return steps[key] }
	if step("compile none") != step("compile slow") || step("compile none") != step("compile slow link") ||
		step("run none") != step("compile none") {
		t.Errorf("what is expected without a measurement: %v", steps)
	}
	if step("run slow") < 2*step("run none") || step("run slow link") == step("run none") {
		t.Errorf("what is expected with one: %v", fmt.Sprint(steps))
	}
}

func mustProgram(t *testing.T, ui *console.Console, d *decision) *ir.Program {
	t.Helper()
	p, err := compileProgram(ui, d.job, d.Best.Plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
