package swift

import (
	"errors"
	"testing"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// Import never panics, and its errors have positions. An edit that is made is read back, and a refused one changes
// nothing.
func FuzzImport(f *testing.F) {
	f.Add(script)
	f.Add("A=(--micro_batch_size 1)\nmegatron pt \"${A[@]}\" --sequence_parallel \\\n  --bf16 false\n")
	f.Add("--tensor_model_parallel_size 3 --pipeline_model_parallel_layout 'E|t*8L' --moe_router_topk x\n")
	f.Fuzz(func(t *testing.T, text string) {
		files := []interop.File{{Name: "run.sh", Data: []byte(text)}}
		Format.Recognize(files[0])
		im, err := Format.Import(files, interop.Options{Devices: 8})
		var diags ir.Diags
		if err != nil {
			if !errors.As(err, &diags) {
				t.Fatal(err)
			}
			return
		}
		im.JobText()
		if im.Doc == nil {
			return
		}
		if string(im.Doc.Bytes()) != text {
			t.Fatal("an import changes the file")
		}
		if err := im.Doc.Set(interop.Value{Key: "--sequence_parallel", Text: "true"}); err != nil {
			if string(im.Doc.Bytes()) != text {
				t.Fatalf("a refused edit changes the file: %v", err)
			}
			return
		}
		if got, ok := im.Doc.Get("--sequence_parallel"); !ok || got != "true" {
			t.Fatalf("--sequence_parallel is %q\n%s", got, im.Doc.Bytes())
		}
	})
}
