package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"

	"github.com/planc-dev/planc/tools/avo/align"
	"github.com/planc-dev/planc/tools/avo/vex"
)

const (
	nosplit = attr.NOSPLIT
	rodata  = attr.RODATA | attr.NOPTR
)

// folder is where the files are written, relative to the folder of this module.
const folder = "../runtime/vec"

// list has the kernels in the order of the files.
var list = []func(*machine){
	arithmetic, activations, tails, reductions, attentions, norms, ropes, dropouts, casts, optimizers,
}

// sets lists the instruction sets, each with a pair of files.
var sets = []struct {
	file string
	zmm  bool
}{{"zavx2", false}, {"zavx512", true}}

func main() {
	for _, s := range sets {
		files, err := generate(s.file, s.zmm)
		for name, text := range files {
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, name), text, 0o644)
			}
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "vector: %s: %v\n", s.file, err)
			os.Exit(1)
		}
	}
}

// generate returns the contents of a set's files by name: the assembly and its Go declarations.
func generate(name string, zmm bool) (map[string][]byte, error) {
	m := newMachine(zmm)
	for _, kernels := range list {
		kernels(m)
	}
	m.finish()
	file, err := m.Result()
	if err != nil {
		return nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, err
	}
	if !zmm {
		if err := vex.Check(file); err != nil {
			return nil, err
		}
	}
	cfg := printer.Config{Name: "tools/avo/vector", Pkg: "vec"}
	out := map[string][]byte{}
	for ext, p := range map[string]printer.Printer{".s": printer.NewGoAsm(cfg), ".go": printer.NewStubs(cfg)} {
		text, err := p.Print(file)
		if err != nil {
			return nil, err
		}
		if ext == ".s" {
			text = align.Functions(text)
		}
		out[name+"_amd64"+ext] = bytes.TrimLeft(text, "\n")
	}
	return out, nil
}
