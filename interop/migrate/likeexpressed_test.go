package migrate

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
	"github.com/planc-dev/planc/planner"
)

// oldVersion is a file whose version of FSDP has no tensor and no context parallelism.
var oldVersion = []interop.File{{Name: "fsdp1.yaml", Data: []byte(`distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_sharding_strategy: FULL_SHARD
  fsdp_activation_checkpointing: true  # to fit
`)}}

// longJob is a job whose fastest plan with FSDP 2 has context parallelism.
func longJob(t *testing.T, seqLen string, more ...string) *planner.Question {
	t.Helper()
	return questionOf(t, []string{"model=llama3-8b", "cluster.node=dgx-h100", "cluster.nodes=2",
		"train.global_batch=64", "train.seq_len=" + seqLen}, "fsdp", more...)
}

// An export like a file without pins writes the best plan that the file's version can express.
func TestExportLikeAFileSearchesWhatTheFileCanExpress(t *testing.T) {
	f, q := formats.Find("accelerate"), longJob(t, "16384")
	recommended := decide(t, q)
	if recommended.CP == 1 {
		t.Fatalf("the fastest plan is %v", recommended)
	}
	plan, err := Best(f, q, recommended, oldVersion, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if plan.TP*plan.CP != 1 || plan.Zero != 2 {
		t.Errorf("the plan is %v", plan)
	}
	out, err := Export(f, q, plan, oldVersion, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(string(oldVersion[0].Data), "FULL_SHARD", "SHARD_GRAD_OP", 1)
	if string(out.Text) != want {
		t.Errorf("%s\nwant %s", out.Text, want)
	}
}

// A pinned plan that the file's version cannot express is refused by name, with the best plan that it can express if
// one fits.
func TestExportLikeAFileRefusesWhatTheFileCannotExpress(t *testing.T) {
	const isOld = "FSDP 1 cannot express it: it has no parallelism_config; use tp 1 and cp 1, or change the file to " +
		"FSDP 2 (fsdp_version: 2)"
	pins := []string{"plan.sp=false", "plan.zero=3", "plan.micro_batch=1", "plan.recompute=none"}
	for _, c := range []struct{ seqLen, pin, want string }{
		{"8192", "plan.tp=2", "plan.tp: " + isOld + "; the best plan that engine fsdp can run and fsdp1.yaml can " +
			"express is dp 16 · zero 3 · micro_batch 1×4: 4.218 s a step (--set train.engine=fsdp --set plan=null) " +
			"[CannotExpress]"},
		{"32768", "plan.cp=4", "plan.cp: " + isOld + "; no plan that engine fsdp can run and fsdp1.yaml can express " +
			"fits [CannotExpress]"},
	} {
		f, q := formats.Find("accelerate"), longJob(t, c.seqLen, append(pins, c.pin)...)
		plan, err := Best(f, q, decide(t, q), oldVersion, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Export(f, q, plan, oldVersion, interop.Options{})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", c.pin, err, c.want)
		}
	}
}

// The arguments that a refusal names write the plan that it names.
func TestRefusalsNameThePlanThatIsWritten(t *testing.T) {
	f, q := formats.Find("accelerate"), longJob(t, "8192", "plan.tp=2", "plan.zero=3", "plan.sp=false")
	_, err := Export(f, q, decide(t, q), oldVersion, interop.Options{})
	if err == nil {
		t.Fatal("no refusal")
	}
	q, wrong := q.Override(overrides("train.engine=fsdp", "plan=null")...)
	if wrong != nil {
		t.Fatal(wrong)
	}
	plan, wrong := Best(f, q, decide(t, q), oldVersion, interop.Options{})
	if wrong != nil || !strings.Contains(err.Error(), "express is "+plan.String()+": ") {
		t.Errorf("%v is written (%v), and the refusal says: %v", plan, wrong, err)
	}
}

// Reasons of the format and of the file's version are both named.
func TestExportLikeAFileNamesAllReasons(t *testing.T) {
	f, q := formats.Find("accelerate"), longJob(t, "8192", "plan.tp=2", "plan.zero=3", "plan.sp=true")
	_, err := Export(f, q, decide(t, q), oldVersion, interop.Options{})
	for _, key := range []string{"plan.sp: a configuration", "plan.tp: FSDP 1"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("no %s in %v", key, err)
		}
	}
}

// A question's plan that the file can express is written as it is.
func TestBestLikeAFileKeepsAPlanThatTheFileCanExpress(t *testing.T) {
	f, q := formats.Find("accelerate"), longJob(t, "8192")
	plan := decide(t, q)
	if got, err := Best(f, q, plan, oldVersion, interop.Options{}); err != nil || got != plan {
		t.Errorf("%v, %v; want %v", got, err, plan)
	}
}
