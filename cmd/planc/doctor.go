package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/runtime/cpu"
)

func (a *app) doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "what works here, and what is missing",
		Long: "doctor looks at what planc needs on this machine: Go, the cache of builds, disk, the CPU, and what " +
			"there is for\n" +
			"GPUs: driver, cuBLASLt, NCCL, NVRTC, nvcc, with versions; where there are GPUs, how they reach each " +
			"other, and the\n" +
			"network; and what cannot be done without each. It exits with 0 if training on the CPU works, else with " +
			"1 and the fix.",
		Example: "planc doctor --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			d := examine()
			var err error
			if a.json {
				err = a.printJSON(d)
			} else {
				err = a.print(doctorScreen(d))
			}
			if err == nil && !d.Works {
				err = &reportedError{errors.New(d.failure())}
			}
			return err
		},
	}
	a.jsonFlag(c)
	return c
}

// reportedError is a failure whose document is on stdout already.
type reportedError struct{ error }

// States of what doctor looks at.
const (
	stateOK      = "ok"
	stateMissing = "missing" // and not needed for training on the CPU
	stateFailed  = "failed"  // and needed
)

// finding is a thing that doctor looked at.
type finding struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Value string `json:"value"`
	Fix   string `json:"fix"` // of what failed, and what else is missing for; "" if nothing is
}

// doctorDoc is doctor --json.
type doctorDoc struct {
	Schema int       `json:"schema"`
	Planc  string    `json:"planc"`
	Works  bool      `json:"works"` // training on this CPU
	Checks []finding `json:"checks"`
}

// examine looks at everything.
func examine() *doctorDoc {
	root := os.DirFS("/")
	m := inspectMachine(root)
	d := &doctorDoc{Schema: 1, Planc: version, Works: true}
	d.Checks = append(d.Checks, okFinding("planc", fmt.Sprintf("%s, %s/%s, built with %s", version, runtime.GOOS,
		runtime.GOARCH, runtime.Version())))
	d.Checks = append(d.Checks, goFindings()...)
	d.Checks = append(d.Checks, compilerFinding(), cpuFinding(m), memoryFinding(m), okFinding("kernels",
		kernelsText(m.ISA)),
		cacheFinding(), diskFinding(freeDisk))
	d.Checks = append(d.Checks, gpuFindings(root, m)...)
	for _, f := range d.Checks {
		d.Works = d.Works && f.State != stateFailed
	}
	return d
}

func okFinding(name, value string) finding { return finding{name, stateOK, value, ""} }

// goPatience is how long the go command may think about its settings.
const goPatience = 5 * time.Second

// goFindings are the go command, and what of its settings people have changed.
func goFindings() []finding {
	ctx, stop := context.WithTimeout(context.Background(), goPatience)
	defer stop()
	tool, err := build.FindGo(ctx)
	if err != nil {
		return []finding{{"go", stateFailed, err.Error(), "install Go 1.26 or newer and put it on PATH"}}
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
	return []finding{okFinding("go", tool.Env["GOVERSION"]+", "+tool.Path),
		okFinding("go env", flags+", "+mode+"; planc compiles with settings of its own")}
}

// compilerFinding is a C compiler, which training on the CPU does not need.
func compilerFinding() finding {
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return okFinding("C compiler", path+"; training on the CPU does not need one")
		}
	}
	return finding{"C compiler", stateMissing, "none; training on the CPU does not need one",
		"programs for GPUs are built with one, and go test -race"}
}

func cpuFinding(m machine) finding {
	name := m.CPU
	if name == "" {
		name = runtime.GOARCH
	}
	return okFinding("cpu", fmt.Sprintf("%s, %d %s", name, m.Cores, plural(m.Cores, "core")))
}

func memoryFinding(m machine) finding {
	if m.Memory == 0 {
		return finding{"memory", stateMissing, "the system does not say", ""}
	}
	return okFinding("memory", fmt.Sprintf("%s, %s available", size(m.Memory), size(m.Available)))
}

// kernelsText says which kernels a program takes on this machine, whose widest vectors are isa; it can be told to take
// others.
func kernelsText(isa string) string {
	switch best := cpu.Best(); {
	case best != cpu.Portable:
		return best.String()
	case isa == "":
		return "portable Go"
	case isa == "neon":
		return "portable Go; the CPU has neon, which no kernel uses yet"
	}
	return fmt.Sprintf("portable Go; the CPU has %s, but not all that the kernels need", isa)
}

// minCacheDisk is too little for builds of a few jobs, which take some MiB each and as much in Go's cache.
const minCacheDisk = gib / 4

// cacheFinding is the folder of builds: whether it can be written, and the room there.
func cacheFinding() finding {
	dir, err := build.CacheFolder()
	if shared := (*build.SharedCacheError)(nil); errors.As(err, &shared) {
		return finding{"cache", stateFailed, shared.Dir + " " + shared.Why, shared.Fix()}
	}
	if err != nil {
		return finding{"cache", stateFailed, err.Error(), "set HOME or XDG_CACHE_HOME to a folder that can be written"}
	}
	f, err := os.CreateTemp(dir, "doctor-*")
	if err != nil {
		return finding{"cache", stateFailed, fmt.Sprintf("%s cannot be written: %v", dir, errors.Unwrap(err)),
			"make it writable, or set XDG_CACHE_HOME to a folder that is"}
	}
	defer os.Remove(f.Name())
	defer f.Close()
	free, known := freeDisk(dir)
	switch {
	case !known:
		return okFinding("cache", dir)
	case free < minCacheDisk:
		return finding{"cache", stateFailed, fmt.Sprintf("%s has %s free", dir, size(free)),
			"free some disk, or set XDG_CACHE_HOME to a folder with room"}
	}
	return okFinding("cache", fmt.Sprintf("%s, %s free", dir, size(free)))
}

// minRunDisk holds no more than the checkpoints of a small model: of one with a billion parameters each takes 14 GB.
const minRunDisk = 4 * gib

// diskFinding is the room for runs, which write where they are started.
func diskFinding(free func(dir string) (bytes int64, known bool)) finding {
	bytes, known := free(".")
	switch {
	case !known:
		return okFinding("disk", "the system does not say how much is free here")
	case bytes < minRunDisk:
		return finding{"disk", stateMissing, size(bytes) + " free here",
			"checkpoints of all but small models find no room: start programs where there is some, or give them " +
				"another folder with --dir"}
	}
	return okFinding("disk", size(bytes)+" free here, for checkpoints")
}

// doctorScreen is a line a finding.
func doctorScreen(d *doctorDoc) string {
	var b strings.Builder
	for _, f := range d.Checks {
		text := f.Value
		if f.Fix != "" {
			text += ": " + f.Fix
		}
		b.WriteString(prose(pad(f.Name, 12)+pad(f.State, 9), 21, text))
	}
	verdict := "Training on this CPU works."
	if !d.Works {
		verdict = "Training on this CPU does not work; planning does."
	}
	return b.String() + "\n" + verdict + "\nTraining on GPUs has been tried on emulated ones alone.\n"
}

// failure is what keeps training from working, and the fix.
func (d *doctorDoc) failure() string {
	var words []string
	for _, f := range d.Checks {
		if f.State == stateFailed {
			words = append(words, fmt.Sprintf("%s: %s; %s", f.Name, f.Value, f.Fix))
		}
	}
	return "training on this CPU does not work: " + strings.Join(words, "; ")
}
