package interop_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/torchtitan"
)

// optionKeys are keys of torchtitan that set a field of planc's job, with the field, and with values of which
// torchtitan's parser refuses some.
var optionKeys = []struct {
	key, field string
	values     []string
}{
	{"parallelism.tensor_parallel_degree", "plan.tp", []string{"1", "2", "4", "+2", "0_4", "2.0", "None", "x", ""}},
	{"parallelism.context_parallel_degree", "plan.cp", []string{"1", "2", "2e0", "0x2"}},
	{"training.seq_len", "train.seq_len", []string{"2048", "4096", "8k", "1__0", "-"}},
	{"training.steps", "train.steps", []string{"10", "007", "-x"}},
	{"optimizer.lr", "train.optimizer.lr", []string{"1e-4", ".5", "1_0.5", "3", "0x1p-2", "None", "lr"}},
	{"training.max_norm", "train.optimizer.clip_norm", []string{"0.5", "1.", "one"}},
	{"debug.seed", "train.seed", []string{"None", "7", "none"}},
	{"activation_checkpoint.mode", "plan.recompute", []string{"none", "full", "Full"}},
	{"optimizer.name", "", []string{"Adam", "AdamW"}},
	{"training.gc_debug", "", []string{"", "", "True"}},
	{"compile.enable", "", []string{"", "no_", "false"}},
	{"job.description", "", []string{"a", "a=b", "-1a", "--x"}},
	{"model.converters", "", []string{"float8", "", "float8,mx"}},
	{"training.seq_lenn", "", []string{"8"}},
	{"train.steps", "", []string{"8"}},
}

// drawOption returns the words of a random option.
func drawOption(r *rand.Rand) (words []string) {
	o := optionKeys[r.IntN(len(optionKeys))]
	name, value := "--"+o.key, pick(r, o.values...)
	if i := strings.LastIndexByte(name, '.'); value == "no_" {
		name, value = name[:i+1]+"no_"+name[i+1:], ""
	}
	if r.IntN(3) == 0 {
		name = strings.ReplaceAll(name, "_", "-")
	}
	switch {
	case value == "":
		return []string{name}
	case r.IntN(2) == 0:
		return []string{name + "=" + value}
	}
	return []string{name, value}
}

// Random command lines are accepted by torchtitan's own parser and by planc, with the same values, or refused by both.
func TestTorchtitanReadsOptions(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "torchtitan")
	r := rand.New(rand.NewPCG(24, 6))
	const (
		lines = 100
		toml  = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 1024\n[parallelism]\n" +
			"tensor_parallel_degree = 2\n"
	)
	accepted := 0
	for range lines {
		var args []string
		script := "torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file job.toml"
		for range 1 + r.IntN(3) {
			args = append(args, drawOption(r)...)
		}
		for _, arg := range args {
			script += " '" + arg + "'"
		}
		var a struct{ Values map[string]any }
		refusal := o.ask(t, map[string]any{"toml": toml, "args": args}, &a)
		im, err := torchtitan.Format.Import([]interop.File{{Name: "run.sh", Data: []byte(script)},
			{Name: "job.toml", Data: []byte(toml)}}, interop.Options{})
		if (refusal == "") != (err == nil) {
			t.Errorf("%s:\ntorchtitan: %s\nplanc: %v", script, refusal, err)
			continue
		}
		if err != nil {
			continue
		}
		accepted++
		for _, k := range optionKeys {
			f, isSet := im.Field(k.field)
			value := a.Values[k.key]
			if k.field == "" || value == nil || !isSet || strings.HasPrefix(f.From, "default") {
				continue
			}
			if !sameNumber(value, f.Value) {
				t.Errorf("%s: %s is %v, and %s is %s", script, k.key, value, k.field, f.Value)
			}
		}
	}
	t.Logf("%d of %d command lines are accepted", accepted, lines)
	if accepted < lines/10 || accepted > lines*9/10 {
		t.Errorf("%d of %d command lines are accepted", accepted, lines)
	}
}

// sameNumber reports whether a value of torchtitan and one of planc are equal.
func sameNumber(value any, text string) bool {
	var x, y float64
	if _, ok := value.(json.Number); !ok {
		return fmt.Sprint(value) == text
	}
	fmt.Sscan(fmt.Sprint(value), &x)
	fmt.Sscan(text, &y)
	return x == y
}

// The values that options can have are those of torchtitan.
func TestTorchtitanChoicesAreCurrent(t *testing.T) {
	o := startOracle(t, "torchtitan")
	var a struct{ Choices map[string][]string }
	if refusal := o.ask(t, map[string]any{"choices": true}, &a); refusal != "" {
		t.Fatal(refusal)
	}
	if diff := cmp.Diff(a.Choices, torchtitan.Choices); diff != "" {
		t.Error(diff)
	}
}
