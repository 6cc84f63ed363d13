package cli

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

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/visible"
)

// Main is Run as a command: it reads the flags in os.Args and exits the process with the code of Run's error. On
// SIGINT, SIGTERM, SIGQUIT, SIGUSR1 and SIGHUP (the terminal was closed) the run commits a checkpoint and ends. The run
// continues when the reader of its output goes away.
func Main(p *rank.Program) {
	os.Exit(Execute(p, os.Args[1:], os.Stdout, os.Stderr))
}

// sameSignal is the time within which a second signal counts as a copy of the first: timeout(1) signals its child and
// the child's process group, and when a terminal closes, both the kernel and the shell send a signal.
const sameSignal = 500 * time.Millisecond

// Execute runs the binary and returns its exit status. It turns a panic into a message and a status, because Go's own
// status for a panic, 2, would mean that the user's input is wrong.
func Execute(p *rank.Program, args []string, stdout io.Writer, stderr *os.File) (code int) {
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
	if err := c.checkActions(); err != nil {
		return fail(stderr, p, c, err)
	}
	l, err := resolveLaunch(p, c)
	if err != nil {
		return fail(stderr, p, c, exit.Wrap(exit.Cannot, err))
	}
	if c.threads > 0 {
		goruntime.GOMAXPROCS(c.threads * l.Count)
	}
	remove, err := c.prepareTrial()
	if err != nil {
		return fail(stderr, p, c, err)
	}
	defer remove()
	signal.Ignore(syscall.SIGPIPE)
	limited, release := c.limitTime(context.Background())
	defer release()
	ctx, cancel := signal.NotifyContext(limited, stopSignals...)
	defer cancel()
	stopping := context.AfterFunc(ctx, func() {
		time.AfterFunc(sameSignal, cancel) // after this, a second signal ends the process at once
		c.reportStop(stderr, p, limited.Err() != nil)
	})
	c.reportTo(stderr)
	c.options.Launch, c.options.JoinWithin = l, c.within
	result, err := driver.Run(ctx, p, &c.options)
	stopping()
	if c.finder != nil {
		err = c.finder.ended(err)
	}
	if err != nil {
		return fail(stderr, p, c, err)
	}
	if c.fastDevRun {
		result.Metrics, result.Checkpoint = "", "" // they are removed
	}
	switch {
	case l.Process > 0: // only the first process prints
	case result.Export != "" && c.json:
		logger(stdout).Info("summary", "name", result.Name, "step", result.Steps, "export", result.Export)
	case result.Export != "":
		fmt.Fprintln(stdout, result.Export)
	case c.options.Generate != "" && c.json:
		logger(stdout).Info("generated", "name", result.Name, "step", result.Steps, "text", result.Sample)
	case c.options.Generate != "":
		fmt.Fprintln(stdout, result.Sample)
	case c.finder != nil && c.json:
		logger(stdout).Info("lr_find", c.finder.attrs(result.Name)...)
	case c.finder != nil:
		c.finder.print(stdout)
	case c.json:
		logger(stdout).Info("summary", summaryAttrs(p, &result)...)
	default:
		summary(stdout, p, &result)
	}
	return 0
}

// resolveLaunch returns the launch that this process is part of.
func resolveLaunch(p *rank.Program, c *command) (*launch.Launch, error) {
	const once = "%s. Not supported yet: programs for CPUs on several processes. Start the binary once: it runs all " +
		"its ranks in one process%s"
	if p.Devices == nil {
		what := launch.LauncherVariable(os.LookupEnv)
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
	l, err := launch.Resolve(c.launch, p.MeshSize(), os.LookupEnv)
	if p.Devices != nil {
		return l, err
	}
	if u := (*launch.UnsupportedLauncher)(nil); errors.As(err, &u) {
		return nil, fmt.Errorf(once, fmt.Sprintf("%s=%s (%s) says that this process is one of several", u.Name,
			u.Value, u.By), ", with --nnodes 1")
	}
	return l, err
}

// limitTime returns a context that ends after the time of --max-time, if it is given.
func (c *command) limitTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.maxTime > 0 {
		return context.WithTimeout(ctx, c.maxTime)
	}
	return ctx, func() {}
}

// reportStop prints that a signal was received, or that the time of --max-time is over.
func (c *command) reportStop(stderr io.Writer, p *rank.Program, isTimeOver bool) {
	text := "stopping after this step, with a checkpoint; a second signal stops at once"
	switch {
	case c.options.Export != "":
		text = "stopping: nothing will be exported; a second signal stops at once"
	case c.options.Generate != "":
		text = "stopping: nothing will be generated; a second signal stops at once"
	case isTimeOver:
		text = fmt.Sprintf("--max-time %v is over: stopping after this step, with a checkpoint; a signal stops at once",
			c.maxTime)
	}
	if c.json {
		logger(stderr).Warn(text)
		return
	}
	fmt.Fprintf(stderr, "\n%s: %s\n", visible.Text(p.Name), text)
}

// fail reports the error that ends the process and returns its exit code. c is nil if the flags are wrong.
func fail(stderr io.Writer, p *rank.Program, c *command, err error) int {
	code := exit.Failed
	if coded := (*exit.Error)(nil); errors.As(err, &coded) {
		code = coded.Code
	}
	if c != nil && c.json {
		logger(stderr).Error(err.Error(), "name", p.Name, "exit", code)
	} else {
		file, ok := stderr.(*os.File)
		fmt.Fprintln(stderr, report.Message(fmt.Sprintf("%s: %v", p.Name, err), ok && isTerminal(file)))
	}
	return code
}

// printable returns a sampled text in a form that is safe on a terminal. Newlines, tabs and printable characters stay.
// Everything else is escaped as in a Go string, and so is a backslash, so that each escape is unambiguous. A byte-level
// model samples parts of UTF-8 characters, above all early in training.
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
