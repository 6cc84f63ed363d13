//go:build cuda && linux

package gpu

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/planc-dev/planc/cuda/emulated"
)

// A program with sources in place of fatbins compiles them, and those of the runtime, on the machine where
// it runs. An incorrect source is reported.
func TestCompilesHere(t *testing.T) {
	if order := os.Getenv("PLANC_EMULATED_ORDER"); order != "" && order != emulated.Orders[0] {
		t.Skip("what is compiled does not depend on the order")
	}
	k := toy{pp: 2, zero: 1}
	want, err := train(t, k.program(false))
	if err != nil {
		t.Fatal(err)
	}
	text, err := fs.ReadFile(os.DirFS("testdata"), "toy.cu")
	if err != nil {
		t.Fatal(err)
	}
	got, err := train(t, onGPUs(k.program(true), fstest.MapFS{"kernels/toy.cu": {Data: text}}))
	if err != nil {
		t.Fatal(err)
	}
	got.compare(t, &want, 1e-12)
	_, err = train(t, onGPUs(k.program(true), fstest.MapFS{"toy.cu": {Data: append(text, "int wrong(;\n"...)}}))
	if err == nil || !strings.Contains(err.Error(), "toy.cu does not compile:") {
		t.Errorf("a source that is wrong: %v", err)
	}
	_, err = train(t, onGPUs(k.program(true), fstest.MapFS{"README": {}}))
	if err == nil || !strings.Contains(err.Error(), "no kernels") {
		t.Errorf("no kernels: %v", err)
	}
}
