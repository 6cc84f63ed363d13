package data

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// gorootPrefix marks a path inside the Go installation. Any machine with Go can train on its texts.
const gorootPrefix = "goroot:"

// Resolve returns the files that a path of a job file stands for, sorted by name. ${NAME} in path and root is replaced
// by the environment variable. A relative path starts at root, and a relative root at dir, the folder of the job file
// ("" for the current folder). The path may contain the wildcards of filepath.Match, but a file of exactly that name
// has priority. "goroot:PATH" is a file of the Go installation, regardless of root and dir. A missing file is an
// InputError.
func Resolve(path, root, dir string) ([]string, error) {
	p, err := expand(path)
	if err != nil {
		return nil, err
	}
	if rest, ok := strings.CutPrefix(p, gorootPrefix); ok {
		return resolveGoroot(path, rest, goroots())
	}
	base, err := expand(root)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(base) {
		base = filepath.Join(dir, base)
	}
	p = filepath.FromSlash(p)
	if p == "" {
		return nil, inputf("a path is empty")
	}
	files, err := match(base, p)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, notFound(path, base, p)
	}
	return files, nil
}

// match returns the file p, or those that it matches, under base. It is not an error if there is none.
func match(base, p string) ([]string, error) {
	if filepath.IsAbs(p) {
		base = ""
	}
	full := filepath.Join(base, p)
	info, err := os.Stat(full)
	switch {
	case err == nil && info.IsDir():
		return nil, about(full, irregular(full, info.Mode()))
	case err == nil:
		return []string{full}, nil
	case !errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(p, "*?["):
		return nil, readError(full, err)
	}
	files, err := filepath.Glob(filepath.Join(quote(base), p))
	if err != nil {
		return nil, inputf("%q is not a valid pattern: it contains an unclosed [ or \\", p)
	}
	files = slices.DeleteFunc(files, func(f string) bool {
		info, err := os.Stat(f)
		return err == nil && info.IsDir()
	})
	slices.Sort(files)
	return files, nil
}

// quote escapes wildcards in a folder's name.
func quote(dir string) string {
	if runtime.GOOS == "windows" {
		return dir // Match has no escapes there
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

func notFound(path, base, p string) error {
	full := p
	if !filepath.IsAbs(p) {
		full = filepath.Join(base, p)
	}
	if abs, err := filepath.Abs(full); err == nil {
		full = abs
	}
	where := ""
	if full != path {
		where = " (looked for " + full + ")"
	}
	if strings.ContainsAny(p, "*?[") {
		return inputf("no file matches %s%s", path, where)
	}
	return inputf("there is no file %s%s", path, where)
}

// expand replaces each ${NAME}. Other dollar signs stay.
func expand(s string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || name == "" {
			return "", inputf("%q has ${ without a name and }", "${"+rest)
		}
		v, set := os.LookupEnv(name)
		if !set {
			return "", inputf("the environment variable %s is not set, and a path uses ${%s}", name, name)
		}
		b.WriteString(v)
		s = after
	}
}

// goroots returns the folders where a Go installation may be, best first.
func goroots() []string {
	var roots []string
	if r := os.Getenv("GOROOT"); r != "" {
		roots = append(roots, r)
	}
	if goTool, err := exec.LookPath("go"); err == nil {
		if out, err := askRoot(goTool).Output(); err == nil {
			if r := strings.TrimSpace(string(out)); r != "" {
				roots = append(roots, r)
			}
		}
	}
	return slices.Compact(roots)
}

// askRoot returns the command that asks a go command for its installation. The current folder and the user's go.mod,
// go.work and GOFLAGS must not influence the answer, because a toolchain that they name need not be installed.
func askRoot(goTool string) *exec.Cmd {
	cmd := exec.Command(goTool, "env", "GOROOT")
	cmd.Dir = filepath.VolumeName(goTool) + string(filepath.Separator)
	cmd.Env = append(os.Environ(), "PWD="+cmd.Dir, "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=")
	return cmd
}

func resolveGoroot(path, rest string, roots []string) ([]string, error) {
	const help = "; use --data FILE to train on another file"
	if !filepath.IsLocal(filepath.FromSlash(rest)) {
		return nil, inputf("%s is not a path inside the Go installation", path)
	}
	for _, root := range roots {
		files, err := match(root, filepath.FromSlash(rest))
		if err != nil {
			return nil, err
		}
		if len(files) > 0 {
			return files, nil
		}
	}
	if len(roots) == 0 {
		return nil, inputf("%s is in the Go installation, but this machine has none (GOROOT is not set and go is not "+
			"on PATH)%s", path, help)
	}
	return nil, inputf("%s is not in the Go installation at %s%s", path, strings.Join(roots, " or "), help)
}
