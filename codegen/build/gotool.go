package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// ErrNoGo reports that there is no go command.
var ErrNoGo = errors.New("go is not on PATH: compiling needs Go 1.26 or newer; planning does not")

// OldGoError reports that the go command is too old. Its text is the version found.
type OldGoError string

func (e OldGoError) Error() string {
	return fmt.Sprintf("go on PATH is %s: compiling needs Go 1.26 or newer; planning does not", string(e))
}

// flags are the build flags of every binary. The bytes are the same from any folder and checkout. DWARF is disabled in
// the compiler, because the linker would drop it; this saves a quarter of the linking time.
var flags = []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-gcflags=all=-dwarf=false"}

// toolchain is the go command and those of its settings that influence the binary.
type toolchain struct {
	path string
	host bool // builds for this machine
	gpus bool // builds for GPUs (gpu.go)
	env  map[string]string
}

// facts are the settings of the go command that influence what it compiles.
var facts = []string{"GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFIPS140"}

func (t toolchain) facts() (values []string) {
	for _, name := range facts {
		values = append(values, t.env[name])
	}
	if t.gpus {
		for _, name := range cFacts {
			values = append(values, t.env[name])
		}
	}
	return values
}

// exe returns the suffix of commands on the target.
func (t toolchain) exe() string {
	if t.env["GOOS"] == "windows" {
		return ".exe"
	}
	return ""
}

// findGo finds a go command that is new enough, and asks it, in dir, for its settings.
func findGo(ctx context.Context, dir string, host bool) (toolchain, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return toolchain{}, ErrNoGo
	}
	t := toolchain{path: path, host: host}
	cmd := t.command(ctx, dir, append([]string{"env", "-json"}, facts...)...)
	out, err := cmd.Output()
	if err != nil {
		return toolchain{}, fmt.Errorf("ask %s for its version: %w%s", path, err, complaint(err))
	}
	if err := json.Unmarshal(out, &t.env); err != nil {
		return toolchain{}, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	if err := newEnough(t.env["GOVERSION"]); err != nil {
		return toolchain{}, err
	}
	return t, nil
}

// complaint returns what a failed command printed to stderr, on separate lines.
func complaint(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || len(bytes.TrimSpace(exit.Stderr)) == 0 {
		return ""
	}
	return "\n" + string(bytes.TrimSpace(exit.Stderr))
}

// command returns a run of the go command in dir that does not depend on the network or on the caller's module,
// workspace or flags.
func (t toolchain) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.path, args...)
	cmd.Dir = dir
	cmd.WaitDelay = 2 * time.Second
	cmd.Env = append(os.Environ(), "PWD="+dir,
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GO111MODULE=on", "GOPROXY=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0")
	if t.gpus {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	if t.host {
		cmd.Env = append(cmd.Env, "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	}
	return cmd
}

// GoTool describes the go command that is used for compiling.
type GoTool struct {
	Path string
	Env  map[string]string // settings of `go env`, the user's own
}

// FindGo finds a go command that is new enough, and the user's settings that matter for support questions.
func FindGo(ctx context.Context) (GoTool, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return GoTool{}, ErrNoGo
	}
	t := GoTool{Path: path}
	cmd := exec.CommandContext(ctx, path, "env", "-json", "GOVERSION", "GOFLAGS", "GOMOD", "GO111MODULE")
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local") // as for compiling: no other version is fetched
	out, err := cmd.Output()
	if err != nil {
		return t, fmt.Errorf("ask %s for its settings: %w%s", path, err, complaint(err))
	}
	if err := json.Unmarshal(out, &t.Env); err != nil {
		return t, fmt.Errorf("ask %s for its settings: %w", path, err)
	}
	return t, newEnough(t.Env["GOVERSION"])
}

// newEnough refuses versions of Go that cannot build the runtime. A development version is accepted as new.
func newEnough(v string) error {
	if version.IsValid(v) && version.Compare(v, "go"+minGo) < 0 {
		return OldGoError(v)
	}
	return nil
}
