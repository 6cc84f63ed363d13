package migrate

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/planner"
)

// An edit that leaves one replica keeps the option that shards.
func TestEditsToOneReplicaKeepTheStage(t *testing.T) {
	one := fileNamed("Accelerate with Megatron-LM and two replicas")
	r := reportOfShort(t, one)
	i := slices.IndexFunc(r.Edits, func(e Edit) bool { return e.Message == "tp 4 → 8" })
	if i < 0 {
		t.Fatal("no edit of tp")
	}
	diff, _, _ := r.EditDiff(i)
	if !strings.Contains(diff, "tp_degree: 8") || strings.Contains(diff, "optimizer: false") {
		t.Error(diff)
	}
}

// Degrees that the user gives decide whether a file trains one replica.
func TestGivenDegreesDecideTheReplicas(t *testing.T) {
	one := fileNamed("DeepSpeed with one replica")
	r := reportOf(t, one.files, noFiles, onH100(append(slices.Clone(one.sets), "plan.tp=4", "train.global_batch=16")))
	if from := r.From(); from.Zero != 1 || from.ZeroGroup != 2 {
		t.Error(from)
	}
	one = fileNamed("Accelerate with Megatron-LM and two replicas")
	r = reportOf(t, one.files, noFiles, onH100(append(slices.Clone(one.sets), "plan.pp=2")))
	if from := r.From(); r.Verdict != planner.CheckFine || from.Zero != 0 || from.DP != 1 {
		t.Errorf("%s: %v", r.Message, from)
	}
}

// A file that shards is legal on one replica, which has nothing to shard. Edits leave its stage as it is, and those
// that add replicas shard by it.
func TestOneReplicaShardsNothing(t *testing.T) {
	one := fileNamed("DeepSpeed with one replica")
	r := reportOfShort(t, one)
	if from := r.From(); r.Verdict != planner.CheckFine || from.Zero != 0 || from.DP != 1 {
		t.Fatalf("%s: %v", r.Message, from)
	}
	added := 0
	for i, e := range r.Edits {
		if e.Plan.Replicas() > 1 && !slices.Contains(e.Keys, "zero") {
			added++
			if e.Plan.Zero != 1 {
				t.Errorf("%s: zero %d", e.Message, e.Plan.Zero)
			}
		}
		diff, _, _ := r.EditDiff(i)
		if strings.Contains(diff, "stage\": 0") || e.Plan.Replicas() == 1 && strings.Contains(diff, "+  \"zero_opt") {
			t.Errorf("%s changes the stage:\n%s", e.Message, diff)
		}
	}
	if added == 0 {
		t.Error("no edit adds replicas")
	}
	i := slices.IndexFunc(r.Source.Keys, func(k interop.Key) bool { return k.Name == "zero_optimization.stage" })
	if k := r.Source.Keys[i]; k.Use != interop.Taken || len(k.As) > 0 {
		t.Errorf("%+v", k)
	}
}
