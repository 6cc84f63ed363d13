package interop_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// example returns an import of three keys and a default.
func example() *interop.Import {
	im := &interop.Import{Format: "megatron", Files: []string{"run.sh"}}
	at := func(line int) ir.Pos { return ir.Pos{File: "run.sh", Line: line, Column: 3} }
	im.Take(interop.Key{Pos: at(7), Name: "--tensor-model-parallel-size", Value: "3"},
		interop.Field{Path: "plan.tp", Value: "3"})
	im.Take(interop.Key{Pos: at(4), Name: "--global-batch-size", Value: "512"},
		interop.Field{Path: "train.global_batch", Value: "512"})
	im.Account(interop.Key{Pos: at(9), Name: "--log-interval", Value: "10"}, interop.NoEffect, "")
	im.DefaultField("plan.zero", "0", "no --use-distributed-optimizer")
	return im
}

func TestJobTextNamesTheKeysOfTheFile(t *testing.T) {
	want := `# Imported from run.sh (megatron).
train:
  global_batch: 512                      # --global-batch-size, line 4
plan:
  tp: 3                                  # --tensor-model-parallel-size, line 7
  zero: 0                                # no --use-distributed-optimizer
`
	if diff := cmp.Diff(want, string(example().JobText())); diff != "" {
		t.Error(diff)
	}
}

func TestTranslateMovesErrorsToTheFile(t *testing.T) {
	diags := ir.Diags{
		{Pos: ir.Pos{File: "job", Line: 5, Column: 7}, Code: "BadPlan", Msg: "3 must divide 8 heads"},
		{Pos: ir.Pos{File: "job", Line: 6, Column: 9}, Code: "BadPlan", Msg: "zero 0 does not fit"},
		{Pos: ir.Pos{File: "model.json", Line: 1, Column: 1}, Code: "BadModel", Msg: "no layers"},
	}
	want := ir.Diags{
		{Pos: ir.Pos{File: "run.sh", Line: 7, Column: 3}, Code: "BadPlan",
			Msg: "--tensor-model-parallel-size: 3 must divide 8 heads"},
		{Pos: ir.Pos{File: "run.sh", Line: 1, Column: 1}, Code: "BadPlan",
			Msg: "no --use-distributed-optimizer: zero 0 does not fit"},
		{Pos: ir.Pos{File: "model.json", Line: 1, Column: 1}, Code: "BadModel", Msg: "no layers"},
	}
	if diff := cmp.Diff(want, example().Translate(diags, "job")); diff != "" {
		t.Error(diff)
	}
}

func TestLaterKeysReplaceEarlierOnes(t *testing.T) {
	im := example()
	im.Take(interop.Key{Name: "--global-batch-size", Value: "64"}, interop.Field{Path: "train.global_batch",
		Value: "64"})
	im.DefaultField("train.global_batch", "1", "default")
	if f, _ := im.Field("train.global_batch"); f.Value != "64" {
		t.Errorf("train.global_batch is %s, want 64", f.Value)
	}
	if !im.Has("train") || im.Has("model") {
		t.Error("Has looks at the fields of a mapping")
	}
}
