package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// watched is a Set of one text file whose first sample was read, and its notices.
func watched(t *testing.T, content []byte) (s *Set, path string, notices *[]string) {
	t.Helper()
	path = write(t, t.TempDir(), "t.txt", content)
	earlier := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, earlier, earlier); err != nil {
		t.Fatal(err)
	}
	notices = new([]string)
	s = open(t, Spec{Train: one(path), SeqLen: 1 << 10, Vocab: 256, Notice: func(text string) {
		*notices = append(*notices, strings.ReplaceAll(text, path, "FILE"))
	}})
	if err := readOne(s, 0); err != nil {
		t.Fatal(err)
	}
	return s, path, notices
}

func readOne(s *Set, g int64) error {
	x, y := make([]int32, 1<<10), make([]int32, 1<<10)
	_, err := s.Train(g, x, y)
	return err
}

// later has the next read look at each file, as if so much time had passed.
func later(s *Set, passed time.Duration) {
	for _, f := range s.files {
		f.watch.next.Store(0)
		f.watch.hashed = f.watch.hashed.Add(-passed)
		f.watch.named = f.watch.named.Add(-passed)
	}
}

func wantChanged(t *testing.T, err error, path string, was, now int64, want string) {
	t.Helper()
	var changed *ChangedError
	if !errors.As(err, &changed) {
		t.Errorf("got %v (%T), want a ChangedError", err, err)
		return
	}
	if changed.File != path || changed.Was != was || changed.Now != now {
		t.Errorf("it is about %s of %d and %d bytes, want %s of %d and %d", changed.File, changed.Was, changed.Now,
			path, was, now)
	}
	if got := strings.ReplaceAll(err.Error(), path, "FILE"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A file that becomes shorter is an error that names it, its size before and its size now, whichever part is read.
func TestTruncatedFileIsAnError(t *testing.T) {
	const want = "data: FILE was truncated while training: it had 1048576 bytes when it was opened, and has " +
		"5000 now; restore the complete file, then start the run again"
	s, path, _ := watched(t, make([]byte, 1<<20))
	if err := os.Truncate(path, 5000); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for g := range s.TrainSamples() {
		if err := readOne(s, g); err != nil { // at once where the part is gone
			failed++
			wantChanged(t, err, path, 1<<20, 5000, want)
		}
	}
	if failed < 1000 {
		t.Errorf("%d of %d reads failed", failed, s.TrainSamples())
	}
	later(s, lookEvery)
	for g := range int64(4) { // and everywhere else when it is looked at
		wantChanged(t, readOne(s, g), path, 1<<20, 5000, want)
	}
}

// The hash of all files is of their contents in order, and stays as it is across versions, because checkpoints have it.
func TestSampled(t *testing.T) {
	sampled := func(contents ...string) string {
		spec := Spec{Dir: t.TempDir(), SeqLen: 4, Vocab: 256}
		for i, c := range contents {
			path := filepath.Join(spec.Dir, fmt.Sprint(i, ".txt"))
			if err := os.WriteFile(path, []byte(c), 0o666); err != nil {
				t.Fatal(err)
			}
			spec.Train = append(spec.Train, Source{path, 1})
		}
		s, err := Open(spec)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		sum, err := s.Sampled()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	const want = "453a1c65d23d16e553a194616cedb3e6b6f044907c65da536dc3b11c918a1a9d"
	if got := sampled("first file", "second file"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	long := strings.Repeat("0123456789abcdef", 1<<12)
	for _, other := range [][]string{{"second file", "first file"}, {"first file", "second filE"}, {"first file"},
		{long}, {long[:1<<15] + "x" + long[1:1<<15]}} {
		if sampled(other...) == want {
			t.Errorf("%.40q have the same hash", other)
		}
	}
	if sampled(long) == sampled(long[:len(long)-1]+"x") {
		t.Error("the last byte is not sampled")
	}
}

// Other contents are an error; the same contents written again are noticed once.
func TestOverwrittenFile(t *testing.T) {
	const want = "data: FILE was overwritten while training: it had 1048576 bytes when it was opened and has 1048576 " +
		"now, and its contents have changed; restore the old file, then start the run again; to train on the new " +
		"contents, start over with --resume never"
	for _, changed := range []struct {
		name string
		time bool          // of modification is set back
		wait time.Duration // until it is looked at
	}{{"as writing does", false, lookEvery}, {"with the time of modification set back", true, hashEvery}} {
		s, path, notices := watched(t, make([]byte, 1<<20))
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		later(s, changed.wait)
		if err := readOne(s, 1); err != nil {
			t.Errorf("%s: before: %v", changed.name, err)
		}
		if err := os.WriteFile(path, slices.Repeat([]byte{1}, 1<<20), 0o666); err != nil {
			t.Fatal(err)
		}
		if changed.time {
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}
		later(s, changed.wait)
		for range 2 {
			wantChanged(t, readOne(s, 2), path, 1<<20, 1<<20, want)
		}
		if len(*notices) > 0 {
			t.Errorf("%s: notices %q", changed.name, *notices)
		}
	}
}

// What does not change the bytes that are read is a notice, once.
func TestNotices(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(path string) error
		wait   time.Duration
		want   string
	}{
		{"written again", func(path string) error { return os.WriteFile(path, make([]byte, 1<<20), 0o666) }, lookEvery,
			"data: FILE was written to while training: its size and the 8 blocks of it that are compared are " +
				"unchanged; if other parts changed, this run is not reproducible"},
		{"appended to", func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("more")
			return err
		}, lookEvery, "data: FILE has grown while training, from 1048576 to 1048580 bytes: this run trains on the " +
			"first 1048576; a resumed run would read all of them, and its samples would differ"},
		{"deleted", os.Remove, nameEvery,
			"data: FILE was deleted while training: this run still reads the file that it opened, but a resumed " +
				"run cannot"},
		{"replaced", func(path string) error {
			other := filepath.Join(filepath.Dir(path), "other")
			if err := os.WriteFile(other, make([]byte, 1<<20), 0o666); err != nil {
				return err
			}
			return os.Rename(other, path)
		}, nameEvery, "data: FILE was replaced while training: this run still reads the file that it opened, but a " +
			"resumed run would read the new one"},
	} {
		s, path, notices := watched(t, make([]byte, 1<<20))
		if err := tt.change(path); err != nil {
			t.Skip(err)
		}
		for g := range int64(3) {
			later(s, tt.wait)
			if err := readOne(s, g); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		if !slices.Equal(*notices, []string{tt.want}) {
			t.Errorf("%s: notices %q, want %q", tt.name, *notices, tt.want)
		}
	}
}

// Within a second after the last look a file costs no system call but the read.
func TestFilesAreLookedAtOnceASecond(t *testing.T) {
	s, path, _ := watched(t, make([]byte, 1<<20))
	if err := os.WriteFile(path, slices.Repeat([]byte{1}, 1<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	s.files[0].watch.next.Store(time.Now().Add(time.Hour).UnixNano())
	if err := readOne(s, 1); err != nil {
		t.Error(err)
	}
	s.files[0].watch.next.Store(time.Now().Add(-time.Nanosecond).UnixNano())
	if err := readOne(s, 1); err == nil {
		t.Error("no error when it is time to look")
	}
	if next := time.Until(time.Unix(0, s.files[0].watch.next.Load())); next > 0 {
		t.Errorf("after an error it is looked at in %v", next)
	}
}
