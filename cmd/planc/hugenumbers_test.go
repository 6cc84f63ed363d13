package main

import (
	"slices"
	"strings"
	"testing"
)

// A job with more plans than planc can search in 30 s and 4 GiB is refused.
func TestTooManyPlans(t *testing.T) {
	if !isLong() {
		t.Skip("takes seconds: PLANC_LAWS=long runs it")
	}
	job := []string{"plan", "--model", "qwen3-30b-a3b", "--set", "model.num_hidden_layers=1008", "--set",
		"model.num_experts=240",
		"--cluster", "110880xh100", "--seq-len", "2048", "--global-batch", "43243200"}
	code, out, errs := call(job...)
	want := "--global-batch 43243200: there are more than 400000 combinations of degrees, micro-batch and schedule, " +
		"which is the most that " +
		"planc searches: pin plan.pp, plan.ep or plan.micro_batch (`--set plan.pp=8`), or choose a " +
		"train.global_batch with " +
		"fewer divisors [BadPlan]"
	if got := strings.Join(strings.Fields(errs), " "); code != exitInput || out != "" || !strings.Contains(got, want) {
		t.Errorf("exit code %d, %q; want %s", code, got, want)
	}
	if code, out, errs := call(append(job, "--set", "plan.pp=8")...); code != exitDone ||
		!strings.Contains(out, "pp 8") {
		t.Errorf("with plan.pp=8: exit code %d, %q, %q", code, out, errs)
	}
}

// Numbers far beyond what can be legal are refused where they are read, in a question and in a job.
func TestHugeNumbers(t *testing.T) {
	job := []string{"--cluster", "8xh100", "--seq-len", "4096", "--global-batch", "64"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"explain", "--why-not", "tp=1000000000000"},
			"--why-not tp=1000000000000: tp is 1000000000000; it must be at most 1e6 [OutOfRange]"},
		{[]string{"explain", "--why-not", "pp=1000000000000000000"},
			"--why-not pp=1000000000000000000: pp is 1000000000000000000; it must be at most 128 [OutOfRange]"},
		{[]string{"plan", "--set", "plan.vpp=1000000000"},
			"--set plan.vpp=1000000000: plan.vpp is 1000000000; it must be at most 64 [OutOfRange]"},
		{[]string{"plan", "--set", "model.base=llama3-8b", "--set", "model.num_hidden_layers=10000"},
			"--set model.num_hidden_layers=10000: num_hidden_layers is 10000; it must be at most 1024 [OutOfRange]"},
		{[]string{"plan", "--model", "deepseek-v3", "--set", "model.v_head_dim=2147483648"},
			"--set model.v_head_dim=2147483648: v_head_dim is 2147483648; it must be at most 65536 [OutOfRange]"},
	} {
		args := slices.Concat(c.args[:1], job, c.args[1:])
		if !slices.Contains(args, "--model") {
			args = append(args, "--model", "llama3-8b")
		}
		code, out, errs := call(args...)
		if got := strings.Join(strings.Fields(errs), " "); code != exitInput || out != "" ||
			!strings.Contains(got, c.want) {
			t.Errorf("%q: exit code %d, %q; want %s", c.args, code, got, c.want)
		}
	}
}
