package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"

	"github.com/planc-dev/planc/tools/avo/align"
	"github.com/planc-dev/planc/tools/avo/vex"
)

// root is the repository, relative to the folder of this module.
const root = ".."

// files lists the generated files: NAME_amd64.s and its Go declarations NAME_amd64.go, in a folder of the
// repository.
var files = []struct {
	name string
	emit func(c *build.Context)
	avx2 bool // must run without AVX-512
}{
	{"runtime/cpu/asm/zisa", isa, true},
	{"runtime/cpu/asm/zgemm512", gemm512, false},
	{"runtime/cpu/asm/zgemm256", gemm256, true},
	{"runtime/cpu/asm/zgemm16", gemm16, false},
	{"runtime/cpu/asm/ztiles", tiles, false},
	{"runtime/cpu/asm/zpack512", pack512, false},
	{"runtime/cpu/asm/zsplit512", split512, false},
	{"bench/gemm/zlimit", limit, false},
}

func main() {
	for _, f := range files {
		asm, stubs, err := generate(f.name, f.emit, f.avx2)
		if err == nil {
			err = os.WriteFile(filepath.Join(root, f.name+"_amd64.s"), asm, 0o644)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, f.name+"_amd64.go"), stubs, 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "avo: %s: %v\n", f.name, err)
			os.Exit(1)
		}
	}
}

// packages maps folders to package names other than main.
var packages = map[string]string{"runtime/cpu/asm": "asm"}

// generate returns the assembly of a file and the Go declarations of its functions.
func generate(name string, emit func(c *build.Context), avx2 bool) (asm, stubs []byte, err error) {
	c := build.NewContext()
	emit(c)
	file, err := c.Result()
	if err != nil {
		return nil, nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, nil, err
	}
	if avx2 {
		if err := vex.Check(file); err != nil {
			return nil, nil, err
		}
	}
	cfg := printer.Config{Name: "tools/avo", Pkg: cmp.Or(packages[path.Dir(name)], "main")}
	asm, err = printed(printer.NewGoAsm(cfg), file)
	if err != nil {
		return nil, nil, err
	}
	asm = align.Functions(asm)
	stubs, err = printed(printer.NewStubs(cfg), file)
	return asm, stubs, err
}

// printed prints a file, without the build constraint that its name already implies.
func printed(p printer.Printer, f *ir.File) ([]byte, error) {
	text, err := p.Print(f)
	return bytes.TrimLeft(text, "\n"), err
}
