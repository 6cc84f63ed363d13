package build

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
)

// NoCError reports that there is no C compiler. Its text is the command that was not found.
type NoCError string

func (e NoCError) Error() string {
	return fmt.Sprintf("there is no C compiler %s, which building for NVIDIA GPUs needs: install gcc and libc6-dev, "+
		"or set CC", string(e))
}

// SystemError reports a system for which binaries for GPUs cannot be built. Its text is the GOOS.
type SystemError string

func (e SystemError) Error() string {
	return fmt.Sprintf("binaries for NVIDIA GPUs are for linux, and GOOS is %s", string(e))
}

// cFacts are the settings that influence the C compiler's output; "cc" is the first line of its --version.
var cFacts = []string{"CC", "CGO_CFLAGS", "CGO_LDFLAGS", "cc"}

// forGPUs configures the toolchain to build for GPUs.
func (t *toolchain) forGPUs(ctx context.Context) error {
	if system := t.env["GOOS"]; system != "linux" {
		return SystemError(system)
	}
	t.gpus = true
	out, err := t.command(ctx, "", append([]string{"env", "-json"}, cFacts[:3]...)...).Output()
	if err != nil {
		return fmt.Errorf("ask %s for its C compiler: %w%s", t.path, err, complaint(err))
	}
	if err := json.Unmarshal(out, &t.env); err != nil {
		return fmt.Errorf("ask %s for its C compiler: %w", t.path, err)
	}
	words := strings.Fields(t.env["CC"])
	if len(words) == 0 {
		return NoCError("gcc")
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return NoCError(words[0])
	}
	version, err := exec.CommandContext(ctx, words[0], append(words[1:], "--version")...).Output()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w%s", words[0], err, complaint(err))
	}
	t.env["cc"], _, _ = strings.Cut(string(version), "\n")
	return nil
}

// tags returns flags of the go command in addition to those of every build.
func (t toolchain) tags() []string {
	if t.gpus {
		return []string{"-tags=cuda"}
	}
	return nil
}
