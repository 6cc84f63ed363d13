package spec

import (
	"slices"
	"strings"
	"testing"
)

// A key and its alias set the same field, in a file and by --set, and print under the key.
func TestAliases(t *testing.T) {
	job := strings.Replace(small, "gpt2-124m", "mixtral-8x7b", 1)
	for _, c := range []struct{ text, set string }{
		{"plan: {moe_slack: 1.5}\n", ""},
		{"plan: {moe_capacity_factor: 1.5}\n", ""},
		{"", "plan.moe_slack=1.5"},
		{"", "plan.moe_capacity_factor=1.5"},
		{"plan: {moe_slack: 2}\n", "plan.moe_capacity_factor=1.5"},
		{"plan: {moe_capacity_factor: 2}\n", "plan.moe_slack=1.5"},
	} {
		var sets []Override
		if c.set != "" {
			sets = append(sets, SetFlag(c.set))
		}
		j, err := Load("job.yaml", files{"job.yaml": job + c.text}.read, sets...)
		if err != nil {
			t.Errorf("%q and %q: %v", c.text, c.set, err)
			continue
		}
		if !slices.Equal(j.Plan.MoESlack.Values, []float64{1.5}) || !j.Has("plan.moe_slack") {
			t.Errorf("%q and %q: %v", c.text, c.set, j.Plan.MoESlack)
		}
		if text := string(j.YAML()); !strings.Contains(text, "moe_slack: 1.5") || strings.Contains(text, "capacity") {
			t.Errorf("%q and %q print as\n%s", c.text, c.set, text)
		}
	}
	j, err := Load("job.yaml", files{"job.yaml": job}.read, SetFlag("train.experts={z_loss: 0.01, capacity_factor: 2}"))
	if err != nil || j.Train.Experts.RouterZ != 0.01 || j.Train.Experts.Capacity != 2 {
		t.Errorf("%v: %+v", err, j.Train.Experts)
	}
	_, err = Load("job.yaml", files{"job.yaml": job + "plan: {moe_slack: 2, moe_capacity_factor: 2}\n"}.read)
	const want = "plan.moe_capacity_factor is another name of plan.moe_slack, which is given too: remove one of them"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
