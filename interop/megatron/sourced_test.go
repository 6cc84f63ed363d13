package megatron

import (
	"errors"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
)

// launch starts Megatron-LM with the variables that another file sets.
const launch = "#!/bin/bash\nsource \"$(dirname \"$0\")/env.sh\"\ntorchrun --nproc_per_node $GPUS " +
	"pretrain_gpt.py \\\n  --num-layers 8 --micro-batch-size 1 --tensor-model-parallel-size $TP ${ARGS[@]}\n"

// environment is the file that launch sources.
const environment = "GPUS=8\nTP=2\nARGS=(\n  --pipeline-model-parallel-size 4\n)\n"

func textFile(name, text string) interop.File { return interop.File{Name: name, Data: []byte(text)} }

// onDisk returns a reader of files that are not given.
func onDisk(files map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		text, ok := files[path]
		if !ok {
			return nil, errors.New("no such file")
		}
		return []byte(text), nil
	}
}

// A file that the script sources has its values, however it is found, and in whatever order the files are given.
func TestSourcedFilesAreRead(t *testing.T) {
	folder := interop.Options{Read: onDisk(map[string]string{"jobs/env.sh": environment,
		"jobs/lib/sub.sh": "TP=4"})}
	for _, c := range []struct {
		name  string
		files []interop.File
		o     interop.Options
		tp    string
	}{
		{"given", []interop.File{textFile("run.sh", launch), textFile("env.sh", environment)}, interop.Options{}, "2"},
		{"given first", []interop.File{textFile("env.sh", environment), textFile("run.sh", launch)},
			interop.Options{}, "2"},
		{"in another folder", []interop.File{textFile("a/run.sh", launch), textFile("b/env.sh", environment)},
			interop.Options{}, "2"},
		{"in the script's folder", []interop.File{textFile("jobs/run.sh", launch)}, folder, "2"},
		{"sources another", []interop.File{textFile("jobs/run.sh", launch),
			textFile("env.sh", environment+". lib/sub.sh\n")}, folder, "4"},
		{"sources itself", []interop.File{textFile("run.sh", launch),
			textFile("env.sh", environment+". env.sh\nTP=4\n")}, interop.Options{}, "4"},
		{"if it is there", []interop.File{textFile("run.sh", "if [ -f env.sh ]; then . ./env.sh; fi\n"+launch),
			textFile("env.sh", environment)}, interop.Options{}, "2"},
		{"ends early", []interop.File{textFile("run.sh", launch),
			textFile("env.sh", environment+"return 0\nTP=4\n")}, interop.Options{}, "2"},
	} {
		im, err := Import(c.files, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := values(im)
		if got["plan.tp"] != c.tp || got["plan.pp"] != "4" || im.Devices != 8 || path.Base(im.Files[0]) != "run.sh" {
			t.Errorf("%s: %v, %d devices, files %v", c.name, got, im.Devices, im.Files)
		}
	}
}

// A file that is not given is named, at the variable that needs it and among the keys.
func TestSourcedFilesThatAreNotGiven(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"a variable", launch, "run.sh:4:68: $TP has no value here: type --define TP=VALUE, or give env.sh too, " +
			"which line 2 sources (--tensor-model-parallel-size needs it) [Undefined]"},
		{"a variable of a file in between", "source a/one.sh\n. two.sh\n" + small +
			"--tensor-model-parallel-size $TP", "run.sh:3:267: $TP has no value here: type --define TP=VALUE, or " +
			"give a/one.sh too, which line 1 sources (--tensor-model-parallel-size needs it) [Undefined]"},
		{"a file of the machine", "source ~/.bashrc\n. venv/bin/activate\n" + small +
			"--tensor-model-parallel-size $TP", "run.sh:3:267: $TP has no value here: type --define TP=VALUE " +
			"(--tensor-model-parallel-size needs it) [Undefined]"},
	} {
		_, err := Import([]interop.File{textFile("run.sh", c.script)}, interop.Options{})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
	im := importText(t, "source env.sh\n. $1/x.sh\nsource $2\n"+small, interop.Options{})
	var got []string
	for _, k := range im.Keys {
		if k.Name == "source" {
			got = append(got, k.Pos.String()+" "+k.Value+": "+k.Note)
		}
	}
	want := []string{
		"run.sh:1:1 env.sh: the file is not given, and it may set variables and options: give env.sh too, after " +
			"run.sh",
		"run.sh:2:1 $1/x.sh: the file is not given, and it may set variables and options: give x.sh too, after run.sh",
		"run.sh:3:1 $2: $2 has no value here: type --define 2=VALUE, or give env.sh too, which line 1 sources",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a sourced file has is changed in the script if that is possible, and otherwise named with its place.
func TestEditsOfSourcedValues(t *testing.T) {
	im, err := Import([]interop.File{textFile("run.sh", launch), textFile("env.sh", environment)}, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := im.Doc.Set(interop.Value{Key: "--tensor-model-parallel-size", Text: "4"}); err != nil {
		t.Error(err)
	}
	const changed = "--tensor-model-parallel-size 4 ${ARGS[@]}"
	if text := string(im.Doc.Bytes()); !cmp.Equal(text[len(text)-len(changed)-1:], changed+"\n") {
		t.Errorf("%s", text)
	}
	err = im.Doc.Set(interop.Value{Key: "--pipeline-model-parallel-size", Text: "2"})
	const want = "run.sh: --pipeline-model-parallel-size 2 cannot be written into the script: change it in " +
		"env.sh, line 4"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	err = im.Doc.Remove("--pipeline-model-parallel-size")
	const removed = "run.sh: --pipeline-model-parallel-size cannot be removed from the script: change it in " +
		"env.sh, line 4"
	if err == nil || err.Error() != removed {
		t.Errorf("got %v", err)
	}
	err = im.Doc.Set(interop.Value{Key: "CUDA_DEVICE_MAX_CONNECTIONS", Text: "1", Env: true})
	if got, ok := im.Doc.Get("CUDA_DEVICE_MAX_CONNECTIONS"); err != nil || !ok || got != "1" {
		t.Errorf("%q %v", got, err)
	}
}

// An error in a sourced file has the file's position.
func TestErrorsInSourcedFiles(t *testing.T) {
	_, err := Import([]interop.File{textFile("run.sh", launch),
		textFile("env.sh", "GPUS=8\nTP=2\nARGS=(\n  --pipeline-model-parallel-size two)\n")}, interop.Options{})
	const want = "env.sh:4:3: --pipeline-model-parallel-size two: the value must be an integer [BadOption]"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	_, err = Import([]interop.File{textFile("run.sh", launch), textFile("env.sh", "GPUS=8\nTP=$(nproc)\n")},
		interop.Options{})
	const output = "env.sh:2:4: $TP is the output of a command, which planc does not run: type --define TP=VALUE " +
		"(--tensor-model-parallel-size needs it) [Undefined]"
	if err == nil || err.Error() != output {
		t.Errorf("got %v", err)
	}
}
