package runtime

import (
	"fmt"
	"io"
	goruntime "runtime"
	"runtime/debug"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
)

// launchedBy is the environment variable that planc run sets. The binary's flags then follow --.
const launchedBy = "PLANC_RUN"

// nothingToDo returns the message for a finished run that is started again.
func nothingToDo(total int, byPlanc bool) string {
	return fmt.Sprintf("nothing to do: step %d of %[1]d is done; `%s--steps %d` continues, `%[2]s--resume never` "+
		"starts over",
		total, dashes(byPlanc), 2*total)
}

// pastLast returns the message for a run that resumes after its last step, which last names.
func pastLast(step, total int, last string, byPlanc bool) string {
	return fmt.Sprintf("nothing to do: step %d is after %s; `%s--steps %d` trains %d more, `%[3]s--resume never` "+
		"starts over",
		step, last, dashes(byPlanc), step+total, total)
}

// dashes returns the separator between planc run's flags and the binary's.
func dashes(byPlanc bool) string {
	if byPlanc {
		return "-- "
	}
	return ""
}

// plancModule is the module of the runtime, as the binary's build information names it.
const plancModule = "github.com/planc-dev/planc"

// versionText prints what --version shows: the planc that built the binary, the platform, and the program.
func versionText(w io.Writer, p *Program) {
	planc, cgo := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		planc = plancVersion(info)
		for _, s := range info.Settings {
			if s.Key == "CGO_ENABLED" && s.Value == "1" {
				cgo = ", cgo"
			}
		}
	}
	fmt.Fprintf(w, "%s: program %s\nbuilt by planc %s with %s for %s/%s%s\n", p.Name, program.ShortHash(p.Hash), planc,
		goruntime.Version(), goruntime.GOOS, goruntime.GOARCH, cgo)
}

// plancVersion returns planc's version. The runtime's module is a dependency, or the program is in planc's own module.
func plancVersion(info *debug.BuildInfo) string {
	if strings.HasPrefix(info.Main.Path, plancModule) && info.Main.Version != "" {
		return info.Main.Version
	}
	for _, d := range info.Deps {
		if d.Path == plancModule {
			return d.Version
		}
	}
	return "unknown"
}
