package runtime

import (
	"context"

	"github.com/planc-dev/planc/runtime/cli"
	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/rank"
)

// Run trains the program's model in this process, with all ranks as goroutines. It returns when training is done or
// after ctx ends: it then finishes the step, commits a checkpoint, and returns exit code 75. Unless an option says
// otherwise, it continues from the newest verified checkpoint in its folder. Its error is an *ExitError.
func Run(ctx context.Context, p *rank.Program, opts ...Option) (Result, error) {
	var o driver.Options
	for _, set := range opts {
		set(&o)
	}
	return driver.Run(ctx, p, &o)
}

// Main is Run as a command: it reads the flags in os.Args and exits the process with the code of Run's error. On
// SIGINT, SIGTERM, SIGQUIT and SIGHUP (the terminal was closed) the run commits a checkpoint and ends. The run
// continues when the reader of its output goes away.
func Main(p *Program) { cli.Main(p) }
