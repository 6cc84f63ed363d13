package build

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// Of many builds the most recently used stay.
func TestTrim(t *testing.T) {
	root, now := t.TempDir(), time.Now()
	for i := range keep + 5 {
		dir := filepath.Join(root, fmt.Sprintf("%02d", i))
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, now, now.Add(time.Duration(-i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	touch(filepath.Join(root, fmt.Sprint(keep+4)))
	if err := os.Mkdir(filepath.Join(root, "lock"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := trim(root); err != nil {
		t.Fatal(err)
	}
	for i := range keep + 5 {
		_, err := os.Stat(filepath.Join(root, fmt.Sprintf("%02d", i)))
		if want := i < keep-1 || i == keep+4; (err == nil) != want {
			t.Errorf("build %d, used %d minutes ago: kept %v", i, i, err == nil)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "lock")); err != nil {
		t.Error("the locks are gone")
	}
}

// The private module asks for the Go that planc itself asks for.
func TestMinGo(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if got := regexp.MustCompile(`(?m)^go (.*)$`).FindSubmatch(mod); got == nil || string(got[1]) != minGo {
		t.Errorf("go.mod says %q, minGo is %s", got, minGo)
	}
}
