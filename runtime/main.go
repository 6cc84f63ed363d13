package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/visible"
)

// Main is Run as a command: it reads the flags in os.Args, ends with a committed checkpoint on SIGINT, SIGTERM, SIGQUIT
// and SIGHUP (a terminal that went away), and exits the process with the code of Run's error. Nobody reading its output
// any more does not end it.
func Main(p *Program) {
	os.Exit(execute(p, os.Args[1:], os.Stdout, os.Stderr))
}

// sameSignal is how long after a signal another one is taken for the same: timeout(1) signals its child and the child's
// group, and when a terminal closes, the kernel and the shell do.
const sameSignal = 500 * time.Millisecond

// execute is the binary but for the process. It is the boundary at which a panic becomes a message and a status: Go's
// own would be 2, which says that the user's input is wrong.
func execute(p *Program, args []string, stdout io.Writer, stderr *os.File) (code int) {
	stdout = visible.Writer(stdout)
	c, err := parse(args)
	defer func() {
		if x := recover(); x != nil {
			code = fail(stderr, p, c, fmt.Errorf("%v\n%s", x, debug.Stack()))
		}
	}()
	if err == nil && c.help {
		usage(stdout, p)
		return 0
	}
	if err == nil && c.version {
		versionText(stdout, p)
		return 0
	}
	if err == nil {
		err = c.environment(os.LookupEnv)
	}
	if err != nil {
		return fail(stderr, p, c, err)
	}
	l, err := launchOf(p, c)
	if err != nil {
		return fail(stderr, p, c, &ExitError{ExitCannot, err})
	}
	if c.threads > 0 {
		goruntime.GOMAXPROCS(c.threads * l.Count)
	}
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP,
		syscall.SIGQUIT)
	defer cancel()
	stopping := context.AfterFunc(ctx, func() {
		time.AfterFunc(sameSignal, cancel) // from then on, a second signal ends the process at once
		c.stopping(stderr, p)
	})
	result, err := Run(ctx, p, append(c.opts, c.logOption(stderr), launched(l, c.within))...)
	stopping()
	if err != nil {
		return fail(stderr, p, c, err)
	}
	switch {
	case l.Process > 0: // the first process speaks for all
	case result.Export != "" && c.json:
		logger(stdout).Info("summary", "name", result.Name, "step", result.Steps, "export", result.Export)
	case result.Export != "":
		fmt.Fprintln(stdout, result.Export)
	case c.json:
		logger(stdout).Info("summary", summaryAttrs(p, &result)...)
	default:
		summary(stdout, p, &result)
	}
	return 0
}

// launchOf is the launch that the process is part of.
func launchOf(p *Program, c *command) (*launch.Launch, error) {
	const once = "%s. Not supported yet: programs for CPUs on several processes. Start the binary once: it runs all " +
		"its ranks in one process%s"
	if p.Devices == nil {
		what := launch.Several(os.LookupEnv)
		name, _, _ := strings.Cut(what, "=")
		switch {
		case c.launch != (launch.Flags{}) && c.launch != (launch.Flags{Nodes: "1"}):
			return nil, fmt.Errorf(once, "--nnodes and the flags that go with it start several processes", "")
		case what != "":
			return nil, fmt.Errorf(once, what+" says that this process is one of several",
				" (unset "+name+" if no launcher set it)")
		case c.launch.Nodes == "" && !slices.Contains([]string{"", "1"}, os.Getenv("PET_NNODES")):
			return nil, fmt.Errorf(once, "PET_NNODES says that this process is one of several",
				" (unset PET_NNODES if no launcher set it)")
		}
	}
	l, err := launch.Resolve(c.launch, p.mesh().Size(), os.LookupEnv)
	if p.Devices != nil {
		return l, err
	}
	if u := (*launch.Unobeyed)(nil); errors.As(err, &u) {
		return nil, fmt.Errorf(once, fmt.Sprintf("%s=%s (%s) says that this process is one of several", u.Name,
			u.Value, u.By), ", with --nnodes 1")
	}
	return l, err
}

// stopping says that the signal was heard.
func (c *command) stopping(stderr io.Writer, p *Program) {
	text := "stopping after this step, with a checkpoint; a second signal stops at once"
	if c.export {
		text = "stopping: nothing is exported; a second signal stops at once"
	}
	if c.json {
		logger(stderr).Warn(text)
		return
	}
	fmt.Fprintf(stderr, "\n%s: %s\n", visible.Text(p.Name), text)
}

// fail reports the error that ends the process, and is its exit code. c is nil where the flags are wrong.
func fail(stderr io.Writer, p *Program, c *command, err error) int {
	code := ExitFailed
	if exit := (*ExitError)(nil); errors.As(err, &exit) {
		code = exit.Code
	}
	if c != nil && c.json {
		logger(stderr).Error(err.Error(), "name", p.Name, "exit", code)
	} else {
		file, ok := stderr.(*os.File)
		fmt.Fprintln(stderr, message(fmt.Sprintf("%s: %v", p.Name, err), ok && isTerminal(file)))
	}
	return code
}

// printable is a sampled passage as a terminal may show it: newlines, tabs and all that is print stay, anything else is
// escaped as in a Go string, and so is a backslash, so that each escape says what was drawn. A model of bytes draws
// parts of characters, and early in training mostly those.
func printable(s string) string {
	out := make([]byte, 0, len(s))
	for i, c := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, s[i])
		case c == '\\':
			out = append(out, `\\`...)
		case c == '\n', c == '\t', unicode.IsPrint(c):
			out = utf8.AppendRune(out, c)
		default:
			out = append(out, strings.Trim(strconv.QuoteRune(c), "'")...)
		}
	}
	return string(out)
}
