package ckpt

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// evaluated saves a checkpoint of a step with a validation loss; 0 for none.
func evaluated(t *testing.T, dir string, step int64, loss float64) {
	t.Helper()
	m := Manifest{Step: step, Samples: step, Extra: map[string]string{}}
	if loss > 0 {
		m.Extra[ValidLossExtra] = fmt.Sprint(loss)
	}
	if _, err := Save(dir, m, contents(float32(step))); err != nil {
		t.Fatal(err)
	}
}

// existing returns the steps of a folder's checkpoints, newest first, after it has verified them all.
func existing(t *testing.T, dir string) (have []int64) {
	t.Helper()
	names, err := steps(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		c, err := Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		have = append(have, c.Manifest.Step)
	}
	return have
}

func TestRetain(t *testing.T) {
	for _, c := range []struct {
		keep Retention
		want []int64
	}{
		{Retention{Last: 1}, []int64{60}},
		{Retention{Last: 2}, []int64{60, 50}},
		{Retention{Last: 9}, []int64{60, 50, 40, 30, 20, 10}},
		{Retention{Last: 1, Every: 20}, []int64{60, 40, 20}},
		{Retention{Last: 1, Best: 1}, []int64{60, 20}}, // step 40 reaches the same loss later
		{Retention{Last: 1, Best: 2}, []int64{60, 40, 20}},
		{Retention{Last: 1, Best: 9}, []int64{60, 40, 30, 20}},
		{Retention{Last: 1, Steps: []int64{10, 11}}, []int64{60, 10}},
	} {
		dir := t.TempDir()
		for i, loss := range []float64{0, 2.5, 3, 2.5, 0, 0} {
			evaluated(t, dir, int64(10*(i+1)), loss)
		}
		removed, err := Retain(dir, c.keep)
		if err != nil {
			t.Fatal(err)
		}
		if got := existing(t, dir); !slices.Equal(got, c.want) || len(removed)+len(got) != 6 {
			t.Errorf("%+v keeps %v, removes %v; want %v", c.keep, got, removed, c.want)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
			t.Errorf("%+v leaves %v", c.keep, left)
		}
	}
}

// What is no complete checkpoint, or was set aside, is neither counted nor removed.
func TestRetainLeavesOtherFolders(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []int64{1, 2, 2, 3, 4} { // the second of step 2 sets the first aside
		evaluated(t, dir, step, 0)
	}
	if err := os.Remove(filepath.Join(dir, stepName(4), manifestName)); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"notes", "step-5", "step-00000000.old"} {
		if err := os.Mkdir(filepath.Join(dir, other), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := Retain(dir, Retention{Last: 1})
	want := []string{filepath.Join(dir, stepName(2)), filepath.Join(dir, stepName(1))}
	if err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %v, %v; want %v", removed, err, want)
	}
	for _, stays := range []string{stepName(2) + asideSuffix + "1", stepName(3), stepName(4), "notes", "step-5",
		"step-00000000.old"} {
		if !exists(filepath.Join(dir, stays)) {
			t.Errorf("%s was removed", stays)
		}
	}
}

// Wherever a removal stops, every folder with a checkpoint's name is a complete checkpoint, those that are kept exist,
// and Clean and the next Retain end what it began.
func TestRetainCrashes(t *testing.T) {
	for _, power := range []string{"stays", "fails", "fails, renames undone"} {
		done := false
		for n := 0; !done; n++ {
			dir := t.TempDir()
			for step := range int64(5) {
				evaluated(t, dir, step+1, 0)
			}
			c := newCrashFS(n, errCrash)
			_, err := retain(c, dir, Retention{Last: 2})
			done = err == nil
			if !done && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			if power != "stays" {
				c.lose(power != "fails")
			}
			if have := existing(t, dir); !slices.Equal(have[:2], []int64{5, 4}) {
				t.Fatalf("after %v: %v", c.ops, have)
			}
			if _, err := Clean(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Retain(dir, Retention{Last: 2}); err != nil || !slices.Equal(existing(t, dir), []int64{5, 4}) {
				t.Fatalf("after %v: %v, %v", c.ops, existing(t, dir), err)
			}
		}
	}
}

// The rules hold for random checkpoints: each kept one satisfies a rule, each removed one satisfies none.
func TestRetainRules(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var all []Listed
		losses := map[int64]int{}
		for step := int64(1 + r.IntN(40)); step > 0; step -= int64(1 + r.IntN(3)) {
			losses[step] = r.IntN(8)
			extra := map[string]string{ValidLossExtra: fmt.Sprint(losses[step])}
			all = append(all, Listed{Step: step, Manifest: Manifest{Extra: extra}})
		}
		keep := Retention{Last: 1 + r.IntN(4), Every: int64(r.IntN(6)), Best: r.IntN(4)}
		retained := keep.steps(all)
		for i, s := range all {
			better := 0
			for _, o := range all {
				if a, b := losses[o.Step], losses[s.Step]; a < b || a == b && o.Step < s.Step {
					better++
				}
			}
			want := i < keep.Last || keep.Every > 0 && s.Step%keep.Every == 0 || better < keep.Best
			if retained[s.Step] != want {
				t.Fatalf("%+v of %v: step %d is kept: %t", keep, all, s.Step, retained[s.Step])
			}
		}
	}
}
