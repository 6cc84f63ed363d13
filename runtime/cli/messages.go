package cli

import (
	"fmt"
	"io"
	goruntime "runtime"
	"runtime/debug"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
)

// plancModule is the module of the runtime, as the binary's build information names it.
const plancModule = "github.com/planc-dev/planc"

// versionText prints what --version shows: the planc that built the binary, the platform, and the program.
func versionText(w io.Writer, p *rank.Program) {
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
