package golden_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// examples/gogenerate is a user's module: planc is its tool, and its own program feeds the generated code.
const gogenerate = "../examples/gogenerate"

// generatedThere are the files that go generate writes in that module.
var generatedThere = []string{"adder.lock", "adder/adder_planc.go"}

// user is a copy of that module, without network. Whether cgo is enabled depends on the machine, so that planc is
// compiled once for all tests.
type user struct{ dir string }

func newUser(t *testing.T) *user {
	t.Helper()
	u := &user{t.TempDir()}
	if err := os.CopyFS(u.dir, os.DirFS(gogenerate)); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(harness.Root)
	if err != nil {
		t.Fatal(err)
	}
	u.edit(t, "go.mod", "=> ../..", "=> "+root)
	return u
}

// edit replaces text in a file.
func (u *user) edit(t *testing.T, name, old, new string) {
	t.Helper()
	path := filepath.Join(u.dir, name)
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%s has no %q: %v", name, old, err)
	}
	if err := os.WriteFile(path, bytes.Replace(data, []byte(old), []byte(new), 1), 0o666); err != nil {
		t.Fatal(err)
	}
}

// run runs a command in the module and returns its output.
func (u *user) run(env string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = u.dir
	cmd.Env = append(os.Environ(), "PWD="+u.dir, "GOFLAGS=-mod=readonly", "GOPROXY=off", "GOWORK=off", env)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (u *user) must(t *testing.T, env, name string, args ...string) string {
	t.Helper()
	start := time.Now()
	out, err := u.run(env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	t.Logf("%s %s: %.1f s", name, strings.Join(args, " "), time.Since(start).Seconds())
	return out
}

// The committed files are those that go generate writes; -update writes them.
func (u *user) current(t *testing.T) {
	t.Helper()
	for _, name := range generatedThere {
		now, err := os.ReadFile(filepath.Join(u.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		committed := filepath.Join(gogenerate, name)
		was, err := os.ReadFile(committed)
		switch {
		case err == nil && bytes.Equal(was, now):
		case harness.Updating():
			if err := os.WriteFile(committed, now, 0o666); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is not current: go test ./golden/... -run TestGoGenerate -update", committed)
		}
	}
}

// The guarantees of generated code, in the order of contract.md. golden/script/gen.txtar tests those about files.
func TestGoGenerate(t *testing.T) {
	if testing.Short() {
		t.Skip("builds planc as the tool of another module")
	}
	u := newUser(t)
	u.must(t, "", "go", "generate", "./...")
	u.current(t)

	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, name := range generatedThere {
		if err := os.Chtimes(filepath.Join(u.dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	u.must(t, "", "go", "generate", "./...")
	for _, name := range generatedThere {
		if info, err := os.Stat(filepath.Join(u.dir, name)); err != nil || !info.ModTime().Equal(old) {
			t.Errorf("the second go generate wrote %s: %v", name, err)
		}
	}

	u.must(t, "", "go", "vet", "./...")
	u.must(t, "", "go", "build", "-o", "gogenerate", ".")
	if out := u.must(t, "", "./gogenerate", "-steps", "20", "-dir", "runs/a"); !strings.Contains(out,
		"after 20 steps") {
		t.Errorf("its output is\n%s", out)
	}

	promises, err := os.ReadFile("testdata/promises_test.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(u.dir, "adder", "promises_test.go")
	if err := os.WriteFile(path, promises, 0o666); err != nil {
		t.Fatal(err)
	}
	u.must(t, "", "go", "test", "./adder")
}

// Generated code compiles on other platforms, and a module may vendor planc, which compiles all of planc again.
func TestGoGenerateElsewhere(t *testing.T) {
	harness.ForPlatforms(t)
	u := newUser(t)
	for _, goos := range []string{"darwin", "windows"} {
		u.must(t, "GOOS="+goos, "go", "vet", "./adder")
	}
	u.must(t, "", "go", "mod", "vendor")
	u.must(t, "GOFLAGS=-mod=vendor", "go", "build", "-o", "gogenerate", ".")
	u.must(t, "GOFLAGS=-mod=vendor", "go", "generate", "./...")
	u.current(t)
}

// If a model changes, verify fails and prints what a reviewer needs. If nothing changed, it takes less than two
// seconds.
func TestVerifyGoGenerate(t *testing.T) {
	if testing.Short() {
		t.Skip("builds planc")
	}
	u, planc := newUser(t), harness.Planc(t)
	verify := exec.Command(planc, "verify", "./...")
	verify.Dir = u.dir
	if out, err := verify.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if took := verify.ProcessState.UserTime() + verify.ProcessState.SystemTime(); took > 2*time.Second {
		t.Errorf("verify took %v", took)
	}
	u.edit(t, "adder.yaml", "hidden_size: 32", "hidden_size: 48")
	out, err := u.run("", planc, "verify", "./...")
	if err == nil || err.(*exec.ExitError).ExitCode() != 4 {
		t.Fatalf("verify of another model: %v\n%s", err, out)
	}
	for _, want := range []string{"adder.lock is out of date: model changed\n",
		"adder.lock was written for model.hidden 32; the job now has 48\n",
		"to update it, run: planc gen adder.yaml -o adder\n",
		"\n-    hidden: 32\n+    hidden: 48\n", "\n--- adder/adder_planc.go\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output of verify must contain %q:\n%s", want, out)
		}
	}
}
