package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cmd/planc/internal/machine"
	"github.com/planc-dev/planc/costmodel"
)

// planned is what planc plan prints of a small model with more arguments, and what it says.
func planned(t *testing.T, args ...string) (screen, output string) {
	t.Helper()
	return asked(t, append([]string{"plan"}, args...)...)
}

// asked is what a command prints of that model, and what it says.
func asked(t *testing.T, args ...string) (screen, output string) {
	t.Helper()
	var out, errs strings.Builder
	all := append(args, []string{"--model", "gpt2-124m", "--global-batch", "8", "--seq-len", "64",
		"--precision", "f32"}...)
	if code := run(all, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("%v: exit %d\n%s", all, code, errs.String())
	}
	return out.String(), progressLine.ReplaceAllString(errs.String(), "")
}

// progressLine is what is said of work that takes longer than a moment.
var progressLine = regexp.MustCompile(`(?m)^\w[\w ]* \.\.\.\n`)

// A job on this machine's CPU is priced by the rates that the cache has of it, and the screen says so; with
// --no-measure, with the variable, and on other clusters nothing depends on the machine.
func TestJobOnThisCPU(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	catalogue, _ := planned(t, "--cluster", "2xcpu")
	gpus, _ := planned(t, "--cluster", "2xh100")
	t.Setenv(noMeasureVariable, "")
	m := machine.Inspect(os.DirFS("/"))
	slow := &costmodel.ThisCPU{By: "a test", Cores: m.Cores, Single: 0.01, Double: 0.005, Memory: 1e9, Link: 1e9,
		LatencyUS: 1, Matrix: 1, Overhead: 1}
	if saved := machine.SaveCPU(m, slow); saved.Err != nil {
		t.Fatal(saved.Err)
	}
	if got := machine.CachedCPU(machine.CPUKeyOf(m)); got == nil || *got != *slow {
		t.Fatalf("the cache has %+v", got)
	}
	own, output := planned(t, "--cluster", "2xcpu")
	if output != "" || !strings.Contains(own, "\nengine planc · 1 × cpu = 2 CPU · measured: 10.0 GFLOP/s per core\n") {
		t.Errorf("it says %q and prints\n%s", output, own)
	}
	if step := regexp.MustCompile(`(?m)^step +(\S+ \S+)`); step.FindString(own) == step.FindString(catalogue) {
		t.Errorf("a CPU of a twentieth of the rate takes as long: %s", step.FindString(own))
	}
	for command, want := range map[string]string{"explain": "; measured: 10.0 GFLOP/s per core ",
		"plan --sweep gpus=1..2": " engine planc · measured: 10.0 GFLOP/s per core "} {
		if got, _ := asked(t, append(strings.Fields(command), "--cluster",
			"2xcpu")...); !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("%s prints\n%s", command, got)
		}
	}
	if got, _ := planned(t, "--cluster", "2xcpu", "--no-measure"); got != catalogue {
		t.Errorf("--no-measure prints\n%s\nwant\n%s", got, catalogue)
	}
	if got, _ := planned(t, "--cluster", "2xh100"); got != gpus {
		t.Errorf("on GPUs it prints\n%s\nwant\n%s", got, gpus)
	}
}

// A measurement of another CPU, of another number of cores or cost model, or one that is no whole file is not used.
func TestCachedCPU(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	m := machine.Machine{CPU: "One", Cores: 4}
	c := &costmodel.ThisCPU{By: "a test", Cores: 4, Single: 0.1, Double: 0.05, Memory: 1e9, Link: 1e9, LatencyUS: 1,
		Matrix: 1, Overhead: 1}
	saved := machine.SaveCPU(m, c)
	if saved.Err != nil || machine.CachedCPU(machine.CPUKeyOf(m)) == nil {
		t.Fatal(saved.Err)
	}
	if info, err := os.Stat(saved.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	for _, other := range []machine.Machine{{CPU: "Two", Cores: 4}, {CPU: "One", Cores: 8}} {
		if got := machine.CachedCPU(machine.CPUKeyOf(other)); got != nil {
			t.Errorf("%+v has %+v", other, got)
		}
	}
	newer := machine.CPUKeyOf(m)
	newer.CostModel++
	if got := machine.CachedCPU(newer); got != nil {
		t.Errorf("the next cost model has %+v", got)
	}
	data, err := os.ReadFile(saved.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", string(data[:len(data)/2]), strings.Replace(string(data), "0.1", "0", 1),
		strings.Replace(string(data), "One", "Two", 1)} {
		if err := os.WriteFile(saved.File, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := machine.CachedCPU(machine.CPUKeyOf(m)); got != nil {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}

// The first job on this CPU measures it, once, and says where the measurement is.
func TestCPUIsMeasuredOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(noMeasureVariable, "")
	_, output := planned(t, "--cluster", "2xcpu")
	if want := regexp.MustCompile(`^note: this CPU was measured in [0-9.]+ s: [0-9.]+ GFLOP/s per core in f32\. The ` +
		`measurement is saved in \S+/planc/measured/cpu-[0-9a-f]{24}\.json; --no-measure uses the ` +
		`catalogue's rates instead\n$`); !want.MatchString(output) {
		t.Errorf("it says %q", output)
	}
	if _, output := planned(t, "--cluster", "2xcpu"); output != "" {
		t.Errorf("the second time it says %q", output)
	}
}
