package main

import (
	"fmt"
	"os"
	"runtime"
)

const usage = "usage: cudalab check DIR [TEST] | cudalab time DIR [KERNEL] | cudalab serve DIR FILE"

func main() {
	runtime.LockOSThread() // a CUDA context belongs to a thread
	err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "cudalab:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 || len(args) > 3 {
		return fmt.Errorf("got %d arguments; %s", len(args), usage)
	}
	only := ""
	if len(args) == 3 {
		only = args[2]
	}
	switch {
	case args[0] == "check":
		return check(os.Stdout, args[1], only)
	case args[0] == "time":
		return timeKernels(os.Stdout, args[1], only)
	case args[0] == "serve" && only != "":
		return serve(os.Stdin, os.Stdout, args[1], only)
	}
	return fmt.Errorf("got %q; %s", args, usage)
}
