package build

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
)

// packages counts the packages that the go command compiles, and reports each to watch.
type packages struct {
	mu        sync.Mutex
	done, all int
	watch     func(done, all int)
}

// packages starts to count the packages that a build compiles; nil if nobody watches. The total is determined while the
// build runs.
func (e entry) packages(ctx context.Context, src string, settings []string) *packages {
	if e.watch == nil {
		return nil
	}
	p := &packages{watch: e.watch}
	go func() {
		const stale = "{{if .Stale}}{{.ImportPath}}{{end}}"
		out, err := e.tool.command(ctx, src, slices.Concat([]string{"list", "-deps", "-f", stale}, settings,
			[]string{"."})...).Output()
		if err == nil {
			p.add(0, len(bytes.Fields(out)))
		}
	}()
	return p
}

// add counts packages, and reports the counts.
func (p *packages) add(done, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.all = p.done+done, p.all+all
	if p.all > 0 {
		p.all = max(p.all, p.done) // what was compiled before the question was answered is not among the answer
	}
	if p.watch != nil {
		p.watch(p.done, p.all)
	}
}

// end ends the reports.
func (p *packages) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = nil
}

// build runs go build and returns its output without the names of packages.
func (t toolchain) build(ctx context.Context, src string, args []string, count *packages) (output string, err error) {
	verbose := []string{"build"}
	if count != nil {
		verbose = append(verbose, "-v")
		defer count.end()
	}
	cmd := t.command(ctx, src, append(verbose, args...)...)
	var out buildOutput
	out.count = count
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.text(), err
}

// buildOutput parses the output of the go command: it counts names of packages and collects error messages.
type buildOutput struct {
	count    *packages
	line     []byte // the last one, not ended yet
	retained bytes.Buffer
}

var _ io.Writer = (*buildOutput)(nil)

func (o *buildOutput) Write(p []byte) (int, error) {
	o.line = append(o.line, p...)
	for {
		i := bytes.IndexByte(o.line, '\n')
		if i < 0 {
			return len(p), nil
		}
		o.take(string(o.line[:i+1]))
		o.line = o.line[i+1:]
	}
}

func (o *buildOutput) take(line string) {
	if o.count != nil && isPackage(strings.TrimSpace(line)) {
		o.count.add(1, 0)
		return
	}
	o.retained.WriteString(line)
}

func (o *buildOutput) text() string { return o.retained.String() + string(o.line) }

// isPackage reports whether a line is only the path of a package, as go build -v prints it.
func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:#\"'()")
}
