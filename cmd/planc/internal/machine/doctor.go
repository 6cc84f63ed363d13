package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/cpu"
)

// States of a finding.
const (
	stateOK      = "ok"
	stateMissing = "missing" // not needed for training on the CPU
	StateFailed  = "failed"  // needed for training on the CPU
)

// Finding is the result of one check.
type Finding struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Value string `json:"value"`
	Fix   string `json:"fix"` // what does not work without it, and how to fix that; "" if ok
}

// Report is the document of doctor --json.
type Report struct {
	Schema int       `json:"schema"`
	Planc  string    `json:"planc"`
	Works  bool      `json:"works"` // training on this CPU works
	Checks []Finding `json:"checks"`
}

// Examine runs all checks. version is that of planc.
func Examine(version string) *Report {
	root := os.DirFS("/")
	m := Inspect(root)
	d := &Report{Schema: 1, Planc: version, Works: true}
	d.Checks = append(d.Checks, okFinding("planc", fmt.Sprintf("%s, %s/%s, built with %s", version, runtime.GOOS,
		runtime.GOARCH, runtime.Version())))
	d.Checks = append(d.Checks, goFindings()...)
	d.Checks = append(d.Checks, compilerFinding(), cpuFinding(m), memoryFinding(m), okFinding("kernels",
		kernelsText(m.ISA)),
		cacheFinding(), diskFinding(freeDisk))
	d.Checks = append(d.Checks, gpuFindings(root, m)...)
	for _, f := range d.Checks {
		d.Works = d.Works && f.State != StateFailed
	}
	return d
}

func okFinding(name, value string) Finding { return Finding{name, stateOK, value, ""} }

// goTimeout limits go env.
const goTimeout = 5 * time.Second

// goFindings checks the go command and its settings.
func goFindings() []Finding {
	ctx, stop := context.WithTimeout(context.Background(), goTimeout)
	defer stop()
	tool, err := build.FindGo(ctx)
	if err != nil {
		return []Finding{{"go", StateFailed, err.Error(), "install Go 1.26 or newer and put it on PATH"}}
	}
	flags := "GOFLAGS empty"
	if f := tool.Env["GOFLAGS"]; f != "" {
		flags = "GOFLAGS=" + f
	}
	mode := "no module here"
	if file := tool.Env["GOMOD"]; file != "" && file != os.DevNull {
		mode = "module " + file
	}
	if tool.Env["GO111MODULE"] == "off" {
		mode = "GO111MODULE=off"
	}
	return []Finding{okFinding("go", tool.Env["GOVERSION"]+", "+tool.Path),
		okFinding("go env", flags+", "+mode+"; planc compiles with settings of its own")}
}

// compilerFinding is a C compiler, which training on the CPU does not need.
func compilerFinding() Finding {
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return okFinding("C compiler", path+"; not needed for training on the CPU")
		}
	}
	return Finding{"C compiler", stateMissing, "not found; not needed for training on the CPU",
		"building programs for GPUs and go test -race need one"}
}

func cpuFinding(m Machine) Finding {
	name := m.CPU
	if name == "" {
		name = runtime.GOARCH
	}
	return okFinding("cpu", fmt.Sprintf("%s, %d %s", name, m.Cores, layout.Plural(m.Cores, "core")))
}

func memoryFinding(m Machine) Finding {
	if m.Memory == 0 {
		return Finding{"memory", stateMissing, "unknown", ""}
	}
	return okFinding("memory", fmt.Sprintf("%s, %s available", quantity.Bytes(m.Memory), quantity.Bytes(m.Available)))
}

// kernelsText says which kernels programs use on this machine by default. isa is its widest vector extension.
func kernelsText(isa string) string {
	switch best := cpu.Best(); {
	case best != cpu.Portable:
		return best.String()
	case isa == "":
		return "portable Go"
	case isa == "neon":
		return "portable Go; not supported yet: kernels with neon, which the CPU has"
	}
	return fmt.Sprintf("portable Go; the CPU has %s, but lacks other features that the kernels need", isa)
}

// minCacheDisk is the minimal free disk in bytes for builds of a few jobs. A build takes some MiB, and as much in Go's
// cache.
const minCacheDisk = 1 << 28

// cacheFinding checks that the build cache is writable and has free disk space.
func cacheFinding() Finding {
	dir, err := build.CacheFolder()
	if shared := (*build.SharedCacheError)(nil); errors.As(err, &shared) {
		return Finding{"cache", StateFailed, shared.Dir + " " + shared.Why, shared.Fix()}
	}
	if err != nil {
		return Finding{"cache", StateFailed, err.Error(), "set HOME or XDG_CACHE_HOME to a writable folder"}
	}
	f, err := os.CreateTemp(dir, "doctor-*")
	if err != nil {
		return Finding{"cache", StateFailed, fmt.Sprintf("%s cannot be written: %v", dir, errors.Unwrap(err)),
			"make it writable, or set XDG_CACHE_HOME to a writable folder"}
	}
	defer os.Remove(f.Name())
	defer f.Close()
	free, known := freeDisk(dir)
	switch {
	case !known:
		return okFinding("cache", dir)
	case free < minCacheDisk:
		return Finding{"cache", StateFailed, fmt.Sprintf("%s has %s free", dir, quantity.Bytes(free)),
			"free some disk space, or set XDG_CACHE_HOME to a folder on another disk"}
	}
	return okFinding("cache", fmt.Sprintf("%s, %s free", dir, quantity.Bytes(free)))
}

// minRunDisk is the minimal free disk in bytes for runs. It is enough only for checkpoints of small models: a
// checkpoint of a model with a billion parameters takes 14 GB.
const minRunDisk = 4 << 30

// diskFinding checks the free disk space of this folder, because runs write to the folder where they are started.
func diskFinding(free func(dir string) (bytes int64, known bool)) Finding {
	bytes, known := free(".")
	switch {
	case !known:
		return okFinding("disk", "free space here is unknown")
	case bytes < minRunDisk:
		return Finding{"disk", stateMissing, quantity.Bytes(bytes) + " free here",
			"only checkpoints of small models fit: start programs in a folder on another disk, or pass --dir"}
	}
	return okFinding("disk", quantity.Bytes(bytes)+" free here, for checkpoints")
}

// Screen formats the findings, one per line.
func (d *Report) Screen() string {
	var b strings.Builder
	for _, f := range d.Checks {
		text := f.Value
		if f.Fix != "" {
			text += ": " + f.Fix
		}
		b.WriteString(layout.Prose(layout.Pad(f.Name, 12)+layout.Pad(f.State, 9), 21, text))
	}
	verdict := "Training on this CPU works."
	if !d.Works {
		verdict = "Training on this CPU does not work; planning does."
	}
	return b.String() + "\n" + verdict + "\nTraining on GPUs has been tested only on emulated GPUs.\n"
}

// Failure returns what prevents training on this CPU, and how to fix it.
func (d *Report) Failure() string {
	var words []string
	for _, f := range d.Checks {
		if f.State == StateFailed {
			words = append(words, fmt.Sprintf("%s: %s; %s", f.Name, f.Value, f.Fix))
		}
	}
	return "training on this CPU does not work: " + strings.Join(words, "; ")
}
