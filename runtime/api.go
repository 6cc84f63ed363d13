package runtime

import (
	"context"

	"github.com/planc-dev/planc/runtime/rank"
)

// Run trains the program's model in this process, with all ranks as goroutines. It returns when training is done or
// after ctx ends: it then finishes the step, commits a checkpoint, and returns exit code 75. Unless an option says
// otherwise, it continues from the newest verified checkpoint in its folder. Its error is an *ExitError.
func Run(ctx context.Context, p *rank.Program, opts ...Option) (Result, error) {
	var o options
	for _, set := range opts {
		set(&o)
	}
	return runProgram(ctx, p, &o)
}
