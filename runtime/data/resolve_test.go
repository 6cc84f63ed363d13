package data

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"data/b.bin", "data/a.bin", "data/c.txt", "data/we[i]rd/x.bin", "data/odd*name.bin",
		"data/sub.bin/x"} {
		write(t, dir, name, []byte("x"))
	}
	t.Setenv("PLANC_TEST_DATA", filepath.Join(dir, "data"))
	tests := []struct {
		path, root string
		want       []string
	}{
		{"data/a.bin", "", []string{"a.bin"}},
		{"a.bin", "data", []string{"a.bin"}},
		{"./a.bin", "data/", []string{"a.bin"}},
		{"a.bin", "${PLANC_TEST_DATA}", []string{"a.bin"}},
		{"${PLANC_TEST_DATA}/a.bin", "elsewhere", []string{"a.bin"}},
		{"?.bin", "data", []string{"a.bin", "b.bin"}}, // sorted, and no folder
		{"[ac].*", "data", []string{"a.bin", "c.txt"}},
		{"*.bin", "data/we[i]rd", []string{"we[i]rd/x.bin"}},
		{"odd*name.bin", "data", []string{"odd*name.bin"}},
		{"*.bin", "data", []string{"a.bin", "b.bin", "odd*name.bin"}},
	}
	for _, tt := range tests {
		got, err := Resolve(tt.path, tt.root, dir)
		var want []string
		for _, w := range tt.want {
			want = append(want, filepath.Join(dir, "data", filepath.FromSlash(w)))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Resolve(%q, %q) is %v, %v; want %v", tt.path, tt.root, got, err, want)
		}
	}
}

func TestResolveErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "data/a.bin", []byte("x"))
	tests := []struct{ path, root, want string }{
		{"a.txt", "data", "data: there is no file a.txt (looked for DIR/data/a.txt)"},
		{"/no/such", "", "data: there is no file /no/such"},
		{"/no/../no/such", "", "data: there is no file /no/../no/such (looked for /no/such)"},
		{"/no/such*", "", "data: no file matches /no/such*"},
		{"*.txt", "data", "data: no file matches *.txt (looked for DIR/data/*.txt)"},
		{"[.txt", "data", `data: "[.txt" is not a valid pattern: it contains an unclosed [ or \`},
		{"data", "", "data: DIR/data is a folder; name its files, for example DIR/data/*.bin"},
		{"", "data", "data: a path is empty"},
		{"${PLANC_TEST_UNSET}/a", "", "data: the environment variable PLANC_TEST_UNSET is not set, and a path uses " +
			"${PLANC_TEST_UNSET}"},
		{"a", "${PLANC_TEST_UNSET}", "data: the environment variable PLANC_TEST_UNSET is not set, and a path uses " +
			"${PLANC_TEST_UNSET}"},
		{"x${OPEN", "", `data: "${OPEN" has ${ without a name and }`},
		{"goroot:../x", "", "data: goroot:../x is not a path inside the Go installation"},
	}
	for _, tt := range tests {
		_, err := Resolve(tt.path, tt.root, dir)
		wantInputError(t, err, dir, tt.want)
	}
}

func TestResolveGoroot(t *testing.T) {
	got, err := Resolve("goroot:src/testdata/Isaac.Newton-Opticks.txt", "ignored", "too")
	if err != nil || len(got) != 1 || filepath.Base(got[0]) != "Isaac.Newton-Opticks.txt" {
		t.Errorf("got %v, %v", got, err)
	}

	dir := t.TempDir()
	write(t, dir, "root/src/x.txt", []byte("x"))
	t.Setenv("GOROOT", filepath.Join(dir, "root"))
	got, err = Resolve("goroot:src/*.txt", "", "")
	if err != nil || !slices.Equal(got, []string{filepath.Join(dir, "root/src/x.txt")}) {
		t.Errorf("with GOROOT set: %v, %v", got, err)
	}

	_, err = resolveGoroot("goroot:x", "x", nil)
	wantInputError(t, err, dir, "data: goroot:x is in the Go installation, but this machine has none (GOROOT is not "+
		"set and go is not on PATH); use --data FILE to train on another file")
	_, err = resolveGoroot("goroot:x", "x", []string{dir + "/root", dir})
	wantInputError(t, err, dir, "data: goroot:x is not in the Go installation at DIR/root or DIR; use --data FILE to "+
		"train on another file")
}

// A go.mod or go.work above the job that asks for another toolchain, or flags of the go command, do not hide the Go
// installation.
func TestGorootInAnyModule(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.99.0\n\ntoolchain go1.99.0\n",
		"go.work": "go 1.99.0\n\nuse .\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for name, value := range map[string]string{"GOTOOLCHAIN": "go1.99.0", "GOPROXY": "off", "GOFLAGS": "-no-such-flag",
		"GOROOT": ""} {
		t.Setenv(name, value)
	}
	if files, err := Resolve("goroot:src/testdata/Isaac.Newton-Opticks.txt", "", dir); err != nil || len(files) != 1 {
		t.Errorf("%q, %v", files, err)
	}
}
