package megatron

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
)

// Each edit of a script gives exactly this text.
func TestEditsInPlace(t *testing.T) {
	const tp, pp, sp = "--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--sequence-parallel"
	const model = "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --micro-batch-size 1 "
	set := func(key, text string) interop.Value { return interop.Value{Key: key, Text: text} }
	remove := func(key string) interop.Value { return interop.Value{Key: key, IsAbsent: true} }
	env := func(key, text string) interop.Value { return interop.Value{Key: key, Text: text, Env: true} }
	for _, c := range []struct {
		name, script string
		value        interop.Value
		want         string
	}{
		{"a literal", "python x.py " + model + "\\\n  " + tp + " 2 \\\n  --bf16", set(tp, "4"),
			"python x.py " + model + "\\\n  " + tp + " 4 \\\n  --bf16"},
		{"a variable", "TP=2 # degree\npython x.py " + model + tp + " $TP", set(tp, "4"),
			"TP=4 # degree\npython x.py " + model + tp + " $TP"},
		{"a shared variable", "TP=2\necho $TP\npython x.py " + model + tp + " ${TP}", set(tp, "4"),
			"TP=4\necho $TP\npython x.py " + model + tp + " ${TP}"},
		{"a variable of a condition", "PP=4\nif [ $PP -gt 1 ]; then A=" + sp + "; fi\npython x.py " + model + pp +
			" $PP $A", set(pp, "2"), "PP=2\nif [ $PP -gt 1 ]; then A=" + sp + "; fi\npython x.py " + model + pp +
			" $PP $A"},
		{"an exported variable of a condition", "export PP=4\n[ $PP -gt 1 ] && A=" + sp + "\npython x.py " + model +
			pp + " $PP $A", set(pp, "2"), "export PP=2\n[ $PP -gt 1 ] && A=" + sp + "\npython x.py " + model + pp +
			" $PP $A"},
		{"a variable of a condition that another option depends on", "PP=4\nif [ $PP -gt 1 ]; then A=" + sp +
			"; fi\npython x.py " + model + pp + " $PP $A", set(pp, "1"), "PP=4\nif [ $PP -gt 1 ]; then A=" + sp +
			"; fi\npython x.py " + model + pp + " 1 $A"},
		{"a variable of two options", "N=2\npython x.py " + model + tp + " $N " + pp + " $N", set(tp, "4"),
			"N=2\npython x.py " + model + tp + " 4 " + pp + " $N"},
		{"a variable of the number of devices", "N=2\ntorchrun --nproc_per_node $((N*4)) x.py " + model + tp + " $N",
			set(tp, "4"), "N=2\ntorchrun --nproc_per_node $((N*4)) x.py " + model + tp + " 4"},
		{"a default", "TP=${TP:-2}\npython x.py " + model + tp + " \"$TP\"", set(tp, "4"),
			"TP=${TP:-4}\npython x.py " + model + tp + " \"$TP\""},
		{"a default of an argument", "TP=${1:-2}\npython x.py " + model + tp + " $TP", set(tp, "4"),
			"TP=${1:-4}\npython x.py " + model + tp + " $TP"},
		{"an array", "A=(\n    " + tp + " 2 # x\n    --bf16\n)\npython x.py " + model + "${A[@]}", set(pp, "2"),
			"A=(\n    " + tp + " 2 # x\n    " + pp + " 2\n    --bf16\n)\npython x.py " + model + "${A[@]}"},
		{"a text", "A=\"\n    " + tp + " 2 \\\n    --bf16\n\"\npython x.py " + model + "$A", set(pp, "2"),
			"A=\"\n    " + tp + " 2 \\\n    " + pp + " 2 \\\n    --bf16\n\"\npython x.py " + model + "$A"},
		{"the last line", "python x.py " + model + "\\\n  --bf16 \\\n  " + tp + " 2\necho", set(sp, ""),
			"python x.py " + model + "\\\n  --bf16 \\\n  " + sp + " \\\n  " + tp + " 2\necho"},
		{"one line", "python x.py " + model + tp + " 2 --bf16", set(sp, ""),
			"python x.py " + model + tp + " 2 " + sp + " --bf16"},
		{"remove a line", "A=(\n  " + tp + " 2\n  " + sp + " # yes\n)\npython x.py " + model + "${A[@]}", remove(sp),
			"A=(\n  " + tp + " 2\n  # yes\n)\npython x.py " + model + "${A[@]}"},
		{"remove the last option with a comment", "python x.py " + model + "\\\n  --bf16 \\\n  " + sp + "  # yes\necho",
			remove(sp), "python x.py " + model + "\\\n  --bf16 \\\n  # yes\necho"},
		{"remove the last line", "python x.py " + model + "\\\n  --bf16 \\\n  " + tp + " 2\necho", remove(tp),
			"python x.py " + model + "\\\n  --bf16\necho"},
		{"remove in a line", "python x.py " + model + tp + " 2 --bf16", remove(tp), "python x.py " + model + "--bf16"},
		{"remove a variable's text", "SP=\"" + sp + "\"\npython x.py " + model + "$SP --bf16", remove(sp),
			"SP=\"\"\npython x.py " + model + "$SP --bf16"},
		{"an equals sign", "python x.py " + model + tp + "=2 --bf16", set(tp, "4"),
			"python x.py " + model + tp + "=4 --bf16"},
		{"an export", "export CUDA_DEVICE_MAX_CONNECTIONS=1\npython x.py " + model,
			env("CUDA_DEVICE_MAX_CONNECTIONS", "8"),
			"export CUDA_DEVICE_MAX_CONNECTIONS=8\npython x.py " + model},
		{"a new export", "#!/bin/bash\n\npython x.py \\\n  " + model, env("CUDA_DEVICE_MAX_CONNECTIONS", "1"),
			"#!/bin/bash\n\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\npython x.py \\\n  " + model},
		{"remove an export", "set -e\nexport A_B=1\npython x.py " + model,
			interop.Value{Key: "A_B", Env: true, IsAbsent: true}, "set -e\npython x.py " + model},
		{"remove a prefix", "A_B=1 python x.py " + model, interop.Value{Key: "A_B", Env: true, IsAbsent: true},
			"python x.py " + model},
		{"a calculation", "N=$((2*3))\npython x.py " + model + "--global-batch-size $N",
			set("--global-batch-size", "8"),
			"N=8\npython x.py " + model + "--global-batch-size $N"},
	} {
		doc := importText(t, c.script, interop.Options{}).Doc
		if err := doc.Set(c.value); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, string(doc.Bytes())); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// Setting what is set, and removing what is absent, changes no byte.
func TestEditsOfNothing(t *testing.T) {
	data, err := os.ReadFile("testdata/llama70.sh")
	if err != nil {
		t.Fatal(err)
	}
	doc := importText(t, string(data), interop.Options{}).Doc
	for _, v := range []interop.Value{{Key: "--tensor-model-parallel-size", Text: "4"}, {Key: "--sequence-parallel"},
		{Key: "--recompute-granularity", IsAbsent: true}, {Key: "CUDA_DEVICE_MAX_CONNECTIONS", Text: "1", Env: true}} {
		if err := doc.Set(v); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(string(data), string(doc.Bytes())); diff != "" {
		t.Error(diff)
	}
}

// A remark advises to change the variable itself only if the other arguments leave the job as it is, and not the nodes
// or the environment. There is none if a later edit changes the variable.
func TestRemarksOfVariables(t *testing.T) {
	const tp, pp = "--tensor-model-parallel-size", "--pipeline-model-parallel-size"
	const model = "x.py --num-layers 8 --hidden-size 64 --num-attention-heads 4 --seq-length 64 " +
		"--micro-batch-size 1 --max-position-embeddings 64 --vocab-size 64 "
	const stays, follow = "run.sh: N stays 2, because ", ". Set N=4 instead if the others should follow"
	const alone = " it too: the edit changes " + tp + " alone"
	for _, c := range []struct {
		name, script string
		edits        []string
		want         []string
	}{
		{"a path", "N=2\npython " + model + tp + " $N --save out$N", []string{tp, "4"},
			[]string{stays + "--save uses" + alone + follow}},
		{"a degree", "N=2\npython " + model + tp + " $N " + pp + " $N", []string{tp, "4"},
			[]string{stays + pp + " uses" + alone}},
		{"a degree that changes too", "N=2\npython " + model + tp + " $N " + pp + " $N", []string{tp, "4", pp, "4"},
			nil},
		{"the nodes", "N=2\ntorchrun --nproc_per_node 8 --nnodes $N " + model + tp + " $N", []string{tp, "4"},
			[]string{stays + "the number of devices uses" + alone}},
		{"the environment and a path", "N=2\nexport NCCL_NTHREADS=$N\npython " + model + tp + " $N --save out$N",
			[]string{tp, "4"}, []string{stays + "--save and the environment use" + alone}},
	} {
		doc := importText(t, c.script, interop.Options{Devices: 32}).Doc
		for i := 0; i < len(c.edits); i += 2 {
			if err := doc.Set(interop.Value{Key: c.edits[i], Text: c.edits[i+1]}); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		if diff := cmp.Diff(c.want, doc.(interop.Remarker).Remarks()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
