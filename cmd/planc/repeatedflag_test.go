package main

import (
	"os"
	"strings"
	"testing"
)

// A flag of one value that is given with two is refused, in every command; switches, lists and the same value again are
// not.
func TestFlagsGivenTwice(t *testing.T) {
	t.Chdir(t.TempDir())
	const question = " --model gpt2-124m --cluster 8xh100 --global-batch 8 --seq-len 64"
	for args, want := range map[string]string{
		"explain" + question + " --why-not tp=2 --why-not pp=2": "planc explain --why-not is given twice, as tp=2 " +
			"and as pp=2; give one value [BadFlag]",
		"plan" + question + " --model gpt2-1.5b": "planc plan --model is given twice, as gpt2-124m " +
			"and as gpt2-1.5b; give one value [BadFlag]",
		"-C . plan" + question + " -C ..": "planc plan --chdir is given twice, as . and as ..; " +
			"give one value [BadFlag]",
		"compile -o a -o b": "planc compile --output is given twice, as a and as " +
			"b; give one value [BadFlag]",
		"plan -q -q --json --json" + question + " --cluster 8xh100 --set plan.tp=1 --set plan.pp=1": "",
	} {
		code, _, errs := call(strings.Fields(args)...)
		if flat(errs) != want || (code == exitDone) != (want == "") {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", args, code, flat(errs), want)
		}
	}
}

// A long flag with one dash is recognised, and a number of GPUs is repeated in what to type.
func TestFlagsNearlyRight(t *testing.T) {
	t.Chdir(t.TempDir())
	const names = ", which names the GPUs and how many there are [UnknownFlag]"
	for args, want := range map[string]string{
		"-version":           "planc has no flag -version; did you mean --version? [UnknownFlag]",
		"plan -model=x":      "planc plan has no flag -model; did you mean --model? [UnknownFlag]",
		"plan -x":            "planc plan has no flag -x; the short flags are -o -q -v -h -C [UnknownFlag]",
		"run --gpus 2":       "planc run has no flag --gpus; use --cluster 2xh100" + names,
		"compile --gpus=3":   "planc compile has no flag --gpus; use --cluster 3xh100" + names,
		"plan --num-gpus 16": "planc plan has no flag --num-gpus; use --cluster 16xh100" + names,
		"plan --gpus all":    "planc plan has no flag --gpus; use --cluster 8xh100" + names,
	} {
		if code, _, errs := call(strings.Fields(args)...); code != exitInput || flat(errs) != want {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", args, code, flat(errs), want)
		}
	}
}

// More devices than are planned are refused with the bound, however many digits the number has.
func TestClusterTooLarge(t *testing.T) {
	t.Chdir(t.TempDir())
	for cluster, want := range map[string]string{
		"800000000xh100": "--cluster 800000000xh100: 800000000 devices of dgx-h100; planc supports at most 131072 " +
			"[BadCluster]",
		"800000001xh100": "--cluster 800000001xh100: 800000001 devices of dgx-h100; planc supports at most 131072 " +
			"[BadCluster]",
		"800000000000xdgx-h100": "--cluster 800000000000xdgx-h100: 800000000000 nodes of 8 devices are 6400000000000 " +
			"devices; planc supports at most 131072: use at most 16384 nodes [BadCluster]",
	} {
		code, _, errs := call("plan", "--model", "gpt2-124m", "--cluster", cluster, "--global-batch", "8",
			"--seq-len", "64")
		if code != exitInput || flat(errs) != want {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", cluster, code, flat(errs), want)
		}
	}
}

// A folder that has a job in another format says so, and which formats planc reads.
func TestJobInAnotherFormat(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, x := range []struct{ file, want string }{
		{"planc.toml", "planc: there is no planc.yaml here, but a planc.toml; planc reads YAML or JSON, not TOML: " +
			"write the job as planc.yaml, or planc init writes one [NoFile]"},
		{"planc.json", "planc: there is no planc.yaml here, but a planc.json; name it: planc plan planc.json [NoFile]"},
	} {
		if err := os.WriteFile(x.file, []byte("{}"), 0o666); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := call("plan"); code == exitDone || flat(errs) != x.want {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", x.file, code, flat(errs), x.want)
		}
	}
}
