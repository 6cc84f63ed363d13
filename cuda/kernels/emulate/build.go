package emulate

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed emulate.h
var header []byte

//go:embed serve.h
var server []byte

//go:embed races.h
var racesHeader []byte

//go:embed shadow.h
var shadow []byte

// flags make the compiler as strict as a GPU: a misaligned access or an index out of bounds traps.
// Multiplications are not fused with additions, so that results are the same on every machine.
var flags = []string{"-std=c++17", "-O1", "-DEMULATED", "-fno-strict-aliasing", "-ffp-contract=off", "-Wall", "-Werror",
	"-Wno-unknown-pragmas", "-Wno-sign-compare", "-Wno-clobbered", "-Wno-unknown-warning-option",
	"-Wno-unused-function", "-fsanitize=alignment,bounds", "-fsanitize-undefined-trap-on-error"}

// Header and Flags are what a C++ compiler needs to compile CUDA C++ kernels: emulate.h in front of the
// source, and these flags.
func Header() []byte { return header }

// Flags returns the compiler flags. See Header.
func Flags() []string { return slices.Clone(flags) }

// Compiler is the machine's C++ compiler. It is "" if there is none that can compile the header, for
// example without a standard library or with other system fibers.
var Compiler = sync.OnceValue(func() string {
	for _, name := range []string{os.Getenv("CXX"), "g++", "c++", "clang++"} {
		if path, err := exec.LookPath(name); name != "" && err == nil && compiles(path) {
			return path
		}
	}
	return ""
})

// Skipped says why tests of kernels are skipped, or returns "". They form a suite that runs only if
// PLANC_EMULATE is set. With PLANC_EMULATE=must, a machine without a compiler fails the tests.
func Skipped() string {
	switch wanted := os.Getenv("PLANC_EMULATE"); {
	case wanted == "":
		return "CUDA kernels are not run: PLANC_EMULATE=1 runs them as C++"
	case wanted != "must" && Compiler() == "":
		return "no C++ compiler: CUDA kernels are not run; install g++"
	}
	return ""
}

// compiles reports whether a compiler can build a program that launches a kernel.
func compiles(compiler string) bool {
	dir, err := os.MkdirTemp("", "planc-emulate-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	if os.WriteFile(filepath.Join(dir, "emulate.h"), header, 0o644) != nil {
		return false
	}
	cmd := exec.Command(compiler, append(flags, "-x", "c++", "-", "-o", "probe")...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader("#include \"emulate.h\"\nint main() { return (int)emulate::launch(nullptr, " +
		"nullptr, {0, 0, 0}, {0, 0, 0}, 0).size(); }\n")
	return cmd.Run() == nil && exec.Command(filepath.Join(dir, "probe")).Run() == nil
}

// Build compiles sources, texts by file name, in a folder, and starts the program. The file named main
// includes the others. entries lists the functions that can be launched.
func Build(dir, main string, sources map[string][]byte, entries []string) (*Machine, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "#include \"serve.h\"\n#include %q\nint main() {\n\treturn emulate::serveAll({\n", main)
	for _, e := range entries {
		fmt.Fprintf(&b, "\t\tENTRY(%s),\n", e)
	}
	b.WriteString("\t});\n}\n")
	files := map[string][]byte{"emulate.h": header, "serve.h": server, "races.h": racesHeader, "shadow.cpp": shadow,
		"main.cpp": []byte(b.String())}
	for name, text := range sources {
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, args := range [][]string{
		append(flags, "-DEMULATE_RACES", "-fsanitize=thread", "-c", "main.cpp"),
		{"-std=c++17", "-O2", "-Wall", "-Werror", "-c", "shadow.cpp"},
		{"main.o", "shadow.o", "-o", "emulated"}, // without the library of -fsanitize=thread
	} {
		cmd := exec.CommandContext(ctx, Compiler(), args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compiling %s: %w\n%s", main, err, out)
		}
	}
	return start(filepath.Join(dir, "emulated"))
}
