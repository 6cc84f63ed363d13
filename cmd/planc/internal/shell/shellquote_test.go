package shell

import (
	"os/exec"
	"testing"
)

// A command that a message names can be pasted.
func TestShellPath(t *testing.T) {
	for path, want := range map[string]string{
		"planc.yaml": "planc.yaml", "a/b-c.v2.yaml": "a/b-c.v2.yaml", "größe.yaml": "größe.yaml", "-": "-", "": "''",
		"a b.yaml": "'a b.yaml'", "it's.yaml": `'it'\''s.yaml'`, "$HOME.yaml": "'$HOME.yaml'", "~/x.yaml": "'~/x.yaml'",
		"-o.yaml": "./-o.yaml", "a;b": "'a;b'", "a\nb": "'a\nb'",
	} {
		got := QuotePath(path)
		if got != want {
			t.Errorf("%q is written %s, want %s", path, got, want)
		}
		sh, err := exec.LookPath("sh")
		if err != nil || path == "-o.yaml" {
			continue
		}
		if out, err := exec.Command(sh, "-c", "printf %s "+got).Output(); err != nil || string(out) != path {
			t.Errorf("a shell takes %s for %q (%v), want %q", got, out, err, path)
		}
	}
}
