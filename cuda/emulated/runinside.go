package emulated

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Orders lists the policies under which [RunInside] runs work.
var Orders = []string{"early", "late", "7"}

// RunInside is for a TestMain that does not run on an emulated machine yet. It creates one in a temporary
// folder and runs this program there with its own arguments, under each of [Orders]. prepare creates
// whatever else the tests need in the folder, and returns environment variables for them. RunInside returns
// the exit code and the log of all runs. The exit code is not 0 either if resources were left when a device
// was released.
func RunInside(prepare func(m Machine, dir string) (env []string, err error)) (code int, log string) {
	code, log, err := retry(prepare)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, log
	}
	if _, left, ok := strings.Cut(log, "leak:"); ok {
		fmt.Fprintln(os.Stderr, "left over:", left[:min(len(left), 2000)])
		code = 1
	}
	return code, log
}

func retry(prepare func(m Machine, dir string) ([]string, error)) (code int, log string, err error) {
	dir, err := os.MkdirTemp("", "planc-emulated-")
	if err != nil {
		return 1, "", err
	}
	defer os.RemoveAll(dir)
	m, err := Install(context.Background(), dir)
	if err != nil {
		return 1, "", err
	}
	env, err := prepare(m, dir)
	if err != nil {
		return 1, "", err
	}
	path := filepath.Join(dir, "log")
	for _, order := range Orders {
		cmd := exec.Command(os.Args[0], os.Args[1:]...)
		cmd.Env = append(os.Environ(), m.Env(append(env, "PLANC_EMULATED_ORDER="+order,
			"PLANC_EMULATED_LOG="+path)...)...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "order", order, "fails:", err)
			code = 1
		}
	}
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) { // no test ran work on a device
		err = nil
	}
	return code, string(text), err
}
