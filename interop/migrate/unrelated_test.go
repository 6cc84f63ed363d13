package migrate

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
)

// unrelated are files of several trainings.
var unrelated = map[string]string{
	"run.sh":         oneReplica + "\n",
	"other.sh":       oneReplica + "\n",
	"hello.sh":       "echo hello\n",
	"tt.toml":        "[training]\nlocal_batch_size = 2\n[parallelism]\ntensor_parallel_degree = 2\n",
	"pyproject.toml": "[tool.black]\nline-length = 120\n",
	"ci.yaml":        "name: ci\n",
	"ds.json":        `{"train_batch_size": 64, "zero_optimization": {"stage": 1}}`,
	"args.json":      `{"output_dir": "out", "per_device_train_batch_size": 2}`,
	"acc.yaml":       "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\n",
	"hf.yaml":        "per_device_train_batch_size: 2\nfsdp: full_shard\noutput_dir: out\n",
	"tt.sh":          "torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file ./tt.toml\n",
}

// Files that do not belong to one training are refused, in any order.
func TestUnrelatedFiles(t *testing.T) {
	const own, other = ", which has a plan of its own", ""
	for _, c := range []struct{ main, file, what string }{
		{"run.sh", "tt.toml", own}, {"run.sh", "pyproject.toml", other}, {"run.sh", "hello.sh", other},
		{"run.sh", "ds.json", own}, {"run.sh", "ci.yaml", other}, {"run.sh", "acc.yaml", own},
		{"ds.json", "tt.toml", own}, {"ds.json", "ci.yaml", other}, {"ds.json", "hello.sh", other},
		{"ds.json", "tt.sh", own}, {"acc.yaml", "pyproject.toml", other}, {"acc.yaml", "args.json", own},
		{"acc.yaml", "ds.json", own}, {"hf.yaml", "tt.toml", own}, {"hf.yaml", "hello.sh", other},
	} {
		want := c.file + ":1:1: " + c.main + " does not read this file" + c.what + ": give only the files of one " +
			"training [UnrelatedFile]"
		for _, names := range [][]string{{c.main, c.file}, {c.file, c.main}} {
			var files []interop.File
			for _, name := range names {
				files = append(files, interop.File{Name: name, Data: []byte(unrelated[name])})
			}
			_, err := Read(files, "", interop.Options{Devices: 8})
			if err == nil || err.Error() != want {
				t.Errorf("%s: %v\nwant %s", strings.Join(names, " "), err, want)
			}
		}
	}
}

// The second of two scripts with a plan is the one that is not read.
func TestTwoScriptsWithPlans(t *testing.T) {
	var files []interop.File
	for _, name := range []string{"run.sh", "other.sh"} {
		files = append(files, interop.File{Name: name, Data: []byte(unrelated[name])})
	}
	_, err := Read(files, "", interop.Options{Devices: 8})
	const want = "other.sh:1:1: run.sh does not read this file, which has a plan of its own: give only the files of " +
		"one training [UnrelatedFile]"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
