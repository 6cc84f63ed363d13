package driver

import (
	"testing"

	"github.com/planc-dev/planc/runtime/ckpt"
)

// A checkpoint that does not describe the contents of its data is not compared with this run's.
func TestContentsOfOldCheckpoints(t *testing.T) {
	r := &checkpoints{saver: &saver{job: &job{data: samples{hash: "x"}}}}
	if text := r.otherContents(&ckpt.Manifest{Extra: map[string]string{}}); text != "" {
		t.Errorf("a checkpoint without a hash: %q", text)
	}
}
