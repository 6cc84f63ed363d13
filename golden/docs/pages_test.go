package docs_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// The pages are README.md and docs. They show what planc prints, and name what exists.
//
// The text after a fenced block's language, which GitHub does not show, says what the block is:
//
//	```yaml file=NAME            writes the block's text to file NAME of the page's folder, for later blocks
//	```go show=NAME /re/,/re/    lines of that file
//	```console                   `$ planc ...` or `$ ./BINARY ...`, each followed by its output in that folder
//	```console exit=3            a failing command: with this exit status, and the output on stderr
//	```text                      all other blocks are not checked
//
// /a/,/b/ keeps the lines of the output from the next one that matches a to the next one after it that matches b. /a/
// keeps a single line. "..." replaces the lines between two excerpts. An expression contains no space; use . for it.
// Measured times are printed as an ellipsis.

func TestPagesAreCurrent(t *testing.T) {
	pages := harness.DocPages(t)
	planc := ""
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if !strings.Contains(pages[name], "\n```console") {
			continue
		}
		if planc == "" {
			planc = harness.Planc(t)
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, planc, strings.TrimSuffix(filepath.Base(name), ".md"))
			harness.HoldPage(t, name, pages[name], w.page(t, name, pages[name]))
		})
	}
}

// world is the environment in which a page's blocks run, one after the other.
type world struct {
	planc, dir, name string
	env              []string
}

func newWorld(t *testing.T, planc, name string) *world {
	t.Helper()
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GOCACHE="+strings.TrimSpace(string(goCache)), "XDG_CACHE_HOME="+t.TempDir(),
		"NO_COLOR=1")
	return &world{planc, t.TempDir(), name, env}
}

var fence = regexp.MustCompile("(?ms)^```([a-z]*)([^\n`]*)\n(.*?)^```$")

// page returns the expected text of the page.
func (w *world) page(t *testing.T, name, text string) string {
	line := 1
	var out strings.Builder
	at := 0
	for _, m := range fence.FindAllStringSubmatchIndex(text, -1) {
		line += strings.Count(text[at:m[0]], "\n")
		out.WriteString(text[at:m[6]])
		b := &block{world: w, lang: text[m[2]:m[3]], body: text[m[6]:m[7]]}
		body, err := b.run(text[m[4]:m[5]])
		if err != nil {
			t.Errorf("%s:%d: %v", name, line, err)
			body = b.body
		}
		out.WriteString(body)
		line += strings.Count(text[m[0]:m[7]], "\n")
		at = m[7]
	}
	return out.String() + text[at:]
}

// block is one fenced block.
type block struct {
	*world
	lang, body string
	file, show string
	exit       int
	parts      []part
}

// part is an excerpt: /from/ or /from/,/to/.
type part struct{ from, to *regexp.Regexp }

// run executes the block and returns its expected body.
func (b *block) run(info string) (string, error) {
	if err := b.options(info); err != nil {
		return "", err
	}
	switch {
	case b.file != "":
		path := filepath.Join(b.dir, b.file)
		return b.body, os.WriteFile(path, []byte(b.body), 0o666)
	case b.show != "":
		text, err := os.ReadFile(filepath.Join(b.dir, b.show))
		if err != nil {
			return "", err
		}
		return excerpt(string(text), b.parts)
	case b.lang == "console":
		return b.console()
	}
	return b.body, nil
}

func (b *block) options(info string) error {
	for _, word := range strings.Fields(info) {
		var err error
		switch key, value, _ := strings.Cut(word, "="); {
		case strings.HasPrefix(word, "/"):
			var p part
			ends := regexp.MustCompile(`^/([^/]+)/(?:,/([^/]+)/)?$`).FindStringSubmatch(word)
			if ends == nil {
				return fmt.Errorf("%s is neither /from/ nor /from/,/to/", word)
			}
			p.from, err = regexp.Compile(ends[1])
			if err == nil && ends[2] != "" {
				p.to, err = regexp.Compile(ends[2])
			}
			b.parts = append(b.parts, p)
		case key == "file":
			b.file = value
		case key == "show":
			b.show = value
		case key == "exit":
			b.exit, err = strconv.Atoi(value)
		default:
			err = fmt.Errorf("unknown option %s; the comment in golden/docs/pages_test.go lists the options", word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// console runs the lines of the block that begin with $.
func (b *block) console() (string, error) {
	var out strings.Builder
	lines := strings.SplitAfter(b.body, "\n")
	for i, line := range lines {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		got, err := b.command(strings.Fields(command))
		if err != nil {
			return "", fmt.Errorf("%s: %w", strings.TrimSpace(command), err)
		}
		got, err = excerpt(got, b.parts)
		if err != nil {
			return "", err
		}
		is := ""
		for _, l := range lines[i+1:] {
			if strings.HasPrefix(l, "$ ") {
				break
			}
			is += l
		}
		if alike(is, got) {
			got = is
		}
		out.WriteString(line + got)
	}
	return out.String(), nil
}

// command runs planc and returns its stdout, or a binary of the folder and returns its stderr too.
func (b *block) command(args []string) (string, error) {
	path := b.planc
	if strings.HasPrefix(args[0], "./") {
		path = filepath.Join(b.dir, args[0])
	} else if args[0] != "planc" {
		return "", fmt.Errorf("a page can run only planc and binaries of its folder")
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir, cmd.Env = b.dir, b.env
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if path != b.planc || b.exit != 0 {
		cmd.Stderr = &stdout
	}
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != b.exit {
		return "", fmt.Errorf("%v, want exit status %d\n%s%s", err, b.exit, stdout.String(), stderr.String())
	}
	return scrub(strings.ReplaceAll(stdout.String(), b.dir, "~/"+b.name)), nil
}

var (
	progress = regexp.MustCompile(`(?m)^(step (\d+)/(\d+) .*?)  [\d.]+(?: [kM])? tokens/s  .* left\n`)
	measured = regexp.MustCompile(`(?m)measured [\d.].*$`)
	// a step's warning on a busy machine
	outside = regexp.MustCompile(`(?m)^ +outside the predicted .*\n +other load .*\n +planc calibrate .*\n`)
	// the progress of a long validation
	validates = regexp.MustCompile(`(?m)^step \d+  validating, .*\n`)
	// planc's progress on a slow machine
	waiting = regexp.MustCompile(`(?m)^\w+ \.\.\.\n`)
)

// scrub removes what differs from run to run: measured figures, and steps that are reported because of the time passed.
func scrub(text string) string {
	text = progress.ReplaceAllStringFunc(text, func(line string) string {
		if m := progress.FindStringSubmatch(line); m[2] == "1" || m[2] == m[3] {
			return m[1] + "  … tokens/s\n"
		}
		return ""
	})
	text = validates.ReplaceAllString(outside.ReplaceAllString(text, ""), "")
	return measured.ReplaceAllString(waiting.ReplaceAllString(text, ""), "measured …")
}

var number = regexp.MustCompile(`\d+\.\d+`)

// alike reports whether two outputs differ only in the last digits of fractions. Kinds of machine may round
// differently (docs/concepts/determinism.md).
func alike(a, b string) bool {
	if number.ReplaceAllString(a, "#") != number.ReplaceAllString(b, "#") {
		return false
	}
	x, y := number.FindAllString(a, -1), number.FindAllString(b, -1)
	for i := range x {
		p, _ := strconv.ParseFloat(x[i], 64)
		q, _ := strconv.ParseFloat(y[i], 64)
		if p-q > 1e-3*q || q-p > 1e-3*q {
			return false
		}
	}
	return true
}

// excerpt returns the parts of a text, or all of it if there are no parts.
func excerpt(text string, parts []part) (string, error) {
	if len(parts) == 0 {
		return text, nil
	}
	lines := strings.SplitAfter(text, "\n")
	var out strings.Builder
	last := 0
	for i, p := range parts {
		from := last + slices.IndexFunc(lines[last:], p.from.MatchString)
		if from < last {
			return "", fmt.Errorf("no line matches /%v/", p.from)
		}
		to := from
		if p.to != nil {
			to = from + 1 + slices.IndexFunc(lines[from+1:], p.to.MatchString)
			if to == from {
				return "", fmt.Errorf("no line after /%v/ matches /%v/", p.from, p.to)
			}
		}
		if i > 0 && from > last {
			indent := lines[from][:len(lines[from])-len(strings.TrimLeft(lines[from], " \t"))]
			out.WriteString(indent + "...\n")
		}
		out.WriteString(strings.Join(lines[from:to+1], ""))
		last = to + 1
	}
	return out.String(), nil
}

var (
	link     = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	filePath = regexp.MustCompile("`((?:[a-z][a-z0-9_]*/)+[a-zA-Z0-9_.*-]+)`")
)

// Links and files in backquotes exist.
func TestPagesNameWhatExists(t *testing.T) {
	for name, text := range harness.DocPages(t) {
		for _, m := range link.FindAllStringSubmatch(harness.Prose(text), -1) {
			if !strings.Contains(m[1], "://") && !exists(filepath.Join(harness.Root, filepath.Dir(name), m[1])) {
				t.Errorf("%s: there is no %s", name, m[1])
			}
		}
		if !strings.HasPrefix(name, "docs/") {
			continue
		}
		for _, m := range filePath.FindAllStringSubmatch(text, -1) {
			if isInRepository(t, m[1]) && !exists(filepath.Join(harness.Root, m[1])) {
				t.Errorf("%s: there is no file %s", name, m[1])
			}
		}
	}
}

// Concept pages are short, and each names the files that implement it.
func TestConceptPages(t *testing.T) {
	pages := 0
	for name, text := range harness.DocPages(t) {
		if !strings.HasPrefix(name, "docs/concepts/") {
			continue
		}
		pages++
		if n := strings.Count(text, "\n"); n > 60 {
			t.Errorf("%s has %d lines; at most 60 are allowed", name, n)
		}
		if !regexp.MustCompile("(?m)^Code: `").MatchString(text) {
			t.Errorf("%s must have a line \"Code: `FILE`\" with the files that implement it", name)
		}
	}
	if pages == 0 {
		t.Error("no docs/concepts/*.md")
	}
}

// isInRepository reports whether a path begins with a folder of the repository that has Go files, or with docs.
func isInRepository(t *testing.T, path string) bool {
	top, _, _ := strings.Cut(path, "/")
	return top == "docs" || slices.ContainsFunc(harness.Sources(t), func(s *harness.Source) bool {
		return strings.HasPrefix(s.Path, top+"/")
	})
}

// exists reports whether there is a file or folder that a pattern matches.
func exists(pattern string) bool {
	found, err := filepath.Glob(pattern)
	return err == nil && len(found) > 0
}
