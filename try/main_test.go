package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// A command that is silent has a line each second, and its own exit code.
func TestSilentCommandIsReported(t *testing.T) {
	if os.Getenv("TRY_SILENT") == "1" {
		time.Sleep(2500 * time.Millisecond)
		os.Exit(7)
	}
	t.Setenv("TRY_SILENT", "1")
	var out, errs syncBuffer
	code, err := watched(&out, &errs, "sleeping", os.Args[0], "-test.run", "TestSilentCommandIsReported")
	lines := strings.Split(strings.TrimSuffix(errs.String(), "\n"), "\n")
	if code != 7 || err != nil || out.String() != "" || len(lines) < 2 {
		t.Errorf("exit code %d, %v; %q, %q", code, err, out.String(), lines)
	}
	for _, l := range lines {
		if !regexp.MustCompile(`^sleeping \.\.\. \d s$`).MatchString(l) {
			t.Errorf("%q", l)
		}
	}
}

// A command that cannot be started is an error.
func TestMissingCommand(t *testing.T) {
	var out syncBuffer
	if code, err := watched(&out, &out, "nothing", "./no-such-command"); code == 0 || err == nil {
		t.Errorf("exit code %d, %v", code, err)
	}
}

// syncBuffer is a buffer that several goroutines write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
