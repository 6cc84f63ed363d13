package migrate

import (
	"slices"
	"testing"
)

// Keys that planc chose and that the model's code decides are noted, with how to keep them for the edited file.
func TestAssumedKeysAreNoted(t *testing.T) {
	for name, want := range map[string]string{
		"DeepSpeed with stages": "planc chose stage_layers [17,15], which the model's code decides. Edits keep it: " +
			"check the edited file with --set 'plan.stage_layers=[17,15]'",
		"DeepSpeed with stages that the code says": "planc chose pp 2, stage_layers [17,15], which the model's code " +
			"decides. Edits keep it: check the edited file with --set plan.pp=2 --set 'plan.stage_layers=[17,15]'",
		"Lightning with tensor parallelism": "planc chose sp false, which the model's code decides. Edits keep it: " +
			"check the edited file with --set plan.sp=false",
	} {
		one := fileNamed(name)
		r := reportOfShort(t, one)
		if !slices.Contains(r.Notes, want) {
			t.Errorf("%s: %q", name, r.Notes)
		}
	}
	one := fileNamed("DeepSpeed")
	if r := reportOfShort(t, one); len(r.Notes) > 0 {
		t.Errorf("%q", r.Notes)
	}
}
