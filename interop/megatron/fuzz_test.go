package megatron

import (
	"os"
	"testing"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/interop"
)

// Import never panics. What is set is read back, what is removed is absent, and an edit of nothing changes no byte.
func FuzzImport(f *testing.F) {
	data, err := os.ReadFile("testdata/llama70.sh")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(small + "--recompute-activations --cp-comm-type p2p a2a --bf16"))
	f.Add([]byte("  tensor_model_parallel_size ........ 4\n  num_layers ......... 8\n micro_batch_size .. 1\n"))
	f.Add([]byte("A=(--micro-batch-size=1)\nA+=(--num-layers \"8\" )\npython x.py ${A[@]} " +
		"--pipeline-model-parallel-layout 'E|t*8L'"))
	f.Add([]byte("megatron sft --tensor_model_parallel_size 2 --bf16 true"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, read := range []func([]interop.File, interop.Options) (*interop.Import, error){Import, ImportSwift} {
			file := interop.File{Name: "run.sh", Data: data}
			Recognize(file)
			im, err := read([]interop.File{file}, interop.Options{Devices: 8})
			if err != nil {
				continue
			}
			im.JobText()
			if im.Doc != nil {
				holdEdits(t, im.Doc, string(data), im.Format)
			}
		}
	})
}

// holdEdits checks edits of a document.
func holdEdits(t *testing.T, doc interop.Document, text, format string) {
	t.Helper()
	key := "--tensor-model-parallel-size"
	if format == "swift" {
		key = "--tensor_model_parallel_size"
	}
	if old, ok := doc.Get(key); ok {
		if err := doc.Set(interop.Value{Key: key, Text: old}); err != nil || string(doc.Bytes()) != text {
			t.Fatalf("setting %s %s changes the script: %v\n%s", key, old, err, doc.Bytes())
		}
	}
	if err := doc.Set(interop.Value{Key: key, Text: "16"}); err == nil {
		if got, ok := doc.Get(key); !ok || got != "16" {
			t.Fatalf("%s 16 reads as %q\n%s", key, got, doc.Bytes())
		}
	}
	if err := doc.Remove(key); err == nil {
		if got, ok := doc.Get(key); ok {
			t.Fatalf("%s is still %q\n%s", key, got, doc.Bytes())
		}
	}
}
