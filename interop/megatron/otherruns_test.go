package megatron

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
)

// A file with the arguments of several trainings says which one is read: of a script the first, of a log the last.
func TestSeveralTrainings(t *testing.T) {
	const start = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --micro-batch-size 1 "
	const tp = "--tensor-model-parallel-size "
	dump := func(tp string) string {
		return "---- arguments ----\n  num_layers ......... 8\n  tensor_model_parallel_size .... " + tp +
			"\n  micro_batch_size ..... 1\n  world_size ..... 8\n---- end of arguments ----\n"
	}
	for _, c := range []struct{ name, text, tp, want string }{
		{"run.sh", "python tools/preprocess_data.py --tokenizer-type GPT2BPETokenizer\n" + start + tp + "2\n" + start +
			tp + "4\n", "2", "run.sh:2:1: the script starts pretrain_gpt.py with different arguments in lines " +
			"2 and 3: planc reads and edits the command in line 2"},
		{"run.sh", start + tp + "2\n" + start + tp + "2\n", "2", ""},
		{"a.log", dump("2"), "2", ""},
		{"a.log", dump("2") + dump("2"), "2", ""},
		{"a.log", dump("2") + "step 1\n" + dump("4"), "4",
			"a.log:9:3: the log has 2 lists of arguments, which differ: this is the last"},
		{"a.log", dump("2") + "---- arguments ----\n", "2", ""},
	} {
		im, err := Import([]interop.File{{Name: c.name, Data: []byte(c.text)}}, interop.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var notes []string
		for _, n := range im.Notes {
			if strings.Contains(n.Text, "different arguments") || strings.Contains(n.Text, "lists of arguments") {
				notes = append(notes, n.String())
			}
		}
		if got := strings.Join(notes, "\n"); got != c.want {
			t.Errorf("%s\n%q, want %q", c.text, got, c.want)
		}
		if f, _ := im.Field("plan.tp"); f.Value != c.tp {
			t.Errorf("%s\ntp %s, want %s", c.text, f.Value, c.tp)
		}
	}
}
