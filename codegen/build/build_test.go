package build_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/runtime"
)

// TestMain lets the test binary stand in for an installed planc: with PLANC_TEST_BUILD set it builds that
// program to the path given and prints the result.
func TestMain(m *testing.M) {
	program, ok := os.LookupEnv("PLANC_TEST_BUILD")
	if !ok {
		os.Exit(m.Run())
	}
	r, err := build.Build(context.Background(), build.Request{
		Files: map[string][]byte{"main.go": []byte(program)}, Runtime: runtime.Sources, Out: os.Args[1],
		Version: "v0.1.0",
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

// linkAll is a program that links the whole runtime. It says hello, which keeps builds of tests apart.
func linkAll(t *testing.T, hello string) string {
	t.Helper()
	var s strings.Builder
	s.WriteString("package main\n\nimport (\n\trt \"github.com/planc-dev/planc/runtime\"\n")
	dirs := map[string]bool{}
	files, err := fs.Glob(runtime.Sources, "*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if d := path.Dir(f); !strings.HasSuffix(f, "_test.go") && !dirs[d] {
			dirs[d] = true
			fmt.Fprintf(&s, "\t_ \"github.com/planc-dev/planc/runtime/%s\"\n", d)
		}
	}
	fmt.Fprintf(&s, ")\n\nfunc main() { println(%q, rt.F64.String()) }\n", hello)
	return s.String()
}

// request builds a small program in a cache of its own, with a runtime of one file.
func request(t *testing.T, files map[string]string) build.Request {
	t.Helper()
	r := build.Request{Files: map[string][]byte{}, Cache: t.TempDir(), Runtime: fstest.MapFS{
		"run.go": {Data: []byte("package runtime\n\nfunc Hello() string { return \"hello\" }\n")},
	}}
	for name, data := range files {
		r.Files[name] = []byte(data)
	}
	return r
}

const hello = `package main

import rt "github.com/planc-dev/planc/runtime"

func main() { println(rt.Hello()) }
`

func run(t *testing.T, bin string) string {
	t.Helper()
	out, err := exec.Command(bin).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", bin, err, out)
	}
	return strings.TrimSpace(string(out))
}

// The runtime that planc carries is complete and needs nothing but Go, wherever planc is called: in its own
// checkout, outside any module, in a user's module that has dependencies, a workspace and flags of its own.
func TestBuildAnywhere(t *testing.T) {
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	outside, user := t.TempDir(), t.TempDir()
	write(t, user, "go.work", "go 1.26.0\n\nuse .\n")
	write(t, user, "go.mod", "module example.com/user\n\ngo 1.26.0\n\nrequire example.com/absent v1.0.0\n")
	write(t, user, "train.go", "package user\n\nimport _ \"example.com/absent\"\n")
	cache, mod := t.TempDir(), t.TempDir()
	for _, place := range []struct{ name, dir, flags string }{
		{"checkout", checkout, ""}, {"outside", outside, ""}, {"user's module", user, "-mod=vendor -tags=cuda"},
	} {
		t.Run(place.name, func(t *testing.T) {
			bin := filepath.Join(t.TempDir(), "train")
			cmd := exec.Command(os.Args[0], bin)
			cmd.Dir = place.dir
			cmd.Env = append(os.Environ(), "PWD="+place.dir, "XDG_CACHE_HOME="+cache, "GOCACHE="+goCache(t),
				"GOMODCACHE="+mod,
				"GOFLAGS="+place.flags, "GOPROXY=https://proxy.invalid", "PLANC_TEST_BUILD="+linkAll(t, place.name))
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, err.(*exec.ExitError).Stderr)
			}
			var r build.Result
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatal(err)
			}
			t.Logf("%.2f s", r.Seconds)
			if got := run(t, bin); r.Binary != bin || r.Cached || got != place.name+" f64" {
				t.Errorf("%+v says %q", r, got)
			}
		})
	}
}

func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir, name, data string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
}

// The linker drops the runtime's sources from a binary that does not refer to them, even where they are part of
// package runtime, as they are in a user's module.
func TestSourcesAreNotLinked(t *testing.T) {
	const mark = "a mark that only the embedded file holds: 5bd3a1"
	refer := strings.Replace(hello, "main() {", "main() {\n\t_, _ = rt.Sources.ReadDir(\".\")\n", 1)
	for program, linked := range map[string]bool{hello: false, refer: true} {
		r := request(t, map[string]string{"main.go": program})
		r.Runtime.(fstest.MapFS)["sources.go"] = &fstest.MapFile{
			Data: []byte("package runtime\n\nimport \"embed\"\n\n//go:embed *.go\nvar Sources embed.FS\n\n// " +
				mark + "\n")}
		if got := strings.Contains(read(t, must(t, r).Binary), mark); got != linked {
			t.Errorf("the binary holds the sources: %v, want %v; of\n%s", got, linked, program)
		}
	}
}

// Same files, same binary: from the cache, and the same bytes from another cache. Any other file, another
// binary. Packages may be many.
func TestCache(t *testing.T) {
	files := map[string]string{
		"main.go": strings.Replace(hello, "import rt", "import \"planc.generated/train/p001\"\nimport rt",
			1) + "var _ = p001.P\n",
		// in no cache of Go's yet
		"p001/train.go": fmt.Sprintf("package p001\n\nvar P = 1 // %s\n\nvar _ = %d\n", t.TempDir(),
			time.Now().UnixNano()),
	}
	r := request(t, files)
	r.Dir, r.Out = t.TempDir(), "bin"
	counts := [][2]int{}
	r.Watch = func(done, all int) { counts = append(counts, [2]int{done, all}) }
	first := must(t, r)
	if last := len(counts) - 1; last < 0 || counts[last][0] < 1 || counts[last][1] > 0 &&
		counts[last][1] < counts[last][0] {
		t.Errorf("packages compiled, of how many: %v", counts) // p001 at least
	}
	counts = nil
	if first.Cached || first.Binary != filepath.Join(r.Dir, "bin") || run(t, first.Binary) != "hello" {
		t.Errorf("first build: %+v", first)
	}
	r.Out = ""
	second := must(t, r)
	if !second.Cached || counts != nil || !strings.HasPrefix(second.Binary, r.Cache) {
		t.Errorf("second build: %+v", second)
	}
	other := r
	other.Cache = t.TempDir()
	if elsewhere := must(t, other); elsewhere.Cached || read(t, elsewhere.Binary) != read(t, first.Binary) {
		t.Errorf("another cache: %+v, or other bytes", elsewhere)
	}
	r.Files["p001/train.go"] = []byte("package p001\n\nvar P = 2\n")
	if changed := must(t, r); changed.Cached || changed.Binary == second.Binary {
		t.Errorf("another file: %+v", changed)
	}
	r.Plain = true
	if plain := must(t, r); plain.Cached || run(t, plain.Binary) != "hello" ||
		read(t, plain.Binary) == read(t, first.Binary) {
		t.Errorf("plain: %+v, or the same bytes", plain)
	}
	t.Logf("compiled in %.2f s, found in %.3f s", first.Seconds, second.Seconds)
}

func must(t *testing.T, r build.Request) build.Result {
	t.Helper()
	got, err := build.Build(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Builds of one program at once compile it once.
func TestConcurrent(t *testing.T) {
	r := request(t, map[string]string{"main.go": hello})
	var wg sync.WaitGroup
	results := make([]build.Result, 4)
	for i := range results {
		wg.Go(func() { results[i], _ = build.Build(t.Context(), r) })
	}
	wg.Wait()
	compiled := 0
	for _, got := range results {
		if got.Binary == "" {
			t.Error("a build failed")
		}
		if !got.Cached {
			compiled++
		}
	}
	if compiled != 1 {
		t.Errorf("compiled %d times", compiled)
	}
}

// Generated Go that does not compile is planc's fault; the message says so, and where the files are.
func TestCompileError(t *testing.T) {
	for name, src := range map[string]string{
		"type":   "package main\n\nfunc main() { undefinedName() }\n",
		"syntax": "package main\n\nfunc main( {}\n",
		"import": "package main\n\nimport _ \"example.com/absent\"\n\nfunc main() {}\n",
	} {
		r := request(t, map[string]string{"main.go": src})
		_, err := build.Build(t.Context(), r)
		var fault *build.CompileError
		if !errors.As(err, &fault) {
			t.Errorf("%s: %v is not a CompileError", name, err)
			continue
		}
		if !strings.Contains(err.Error(), "fault in planc") || !strings.Contains(err.Error(), "main.go:3") {
			t.Errorf("%s: %v", name, err)
		}
		if got := read(t, filepath.Join(fault.Dir, "main.go")); got != src {
			t.Errorf("%s: kept %q", name, got)
		}
	}
}

// A canceled build ends with the context's error, and the next build starts again.
func TestCancel(t *testing.T) {
	r := request(t, map[string]string{"main.go": hello})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := build.Build(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	if got := must(t, r); got.Cached {
		t.Errorf("%+v", got)
	}
}

func TestOutIsFolder(t *testing.T) {
	r := request(t, map[string]string{"main.go": hello})
	r.Out = t.TempDir()
	if _, err := build.Build(t.Context(), r); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("got %v", err)
	}
}

func TestNoGo(t *testing.T) {
	r := request(t, map[string]string{"main.go": hello})
	t.Setenv("PATH", t.TempDir())
	if _, err := build.Build(t.Context(), r); !errors.Is(err, build.ErrNoGo) {
		t.Errorf("got %v", err)
	}
}

func TestOldGo(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\necho '{\"GOVERSION\": \"go1.24.3\", \"GOOS\": \"linux\"}'\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	r := request(t, map[string]string{"main.go": hello})
	t.Setenv("PATH", bin)
	_, err := build.Build(t.Context(), r)
	if !errors.Is(err, build.OldGoError("go1.24.3")) || !strings.Contains(err.Error(), "go1.24.3") {
		t.Errorf("got %v", err)
	}
}
