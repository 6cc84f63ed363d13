//go:build unix

package meet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process that may open too few files gets an error with the limit, and joins nothing.
func TestFewDescriptors(t *testing.T) {
	const variable = "PLANC_TEST_DESCRIPTORS"
	if how := os.Getenv(variable); how != "" {
		few(t, how)
		return
	}
	for how, want := range map[string]string{
		"before": "this process may open 40 files and connections, and a launch of 500 processes needs about",
		"lead": "this process has opened all 60 files and connections that it may: raise the limit before starting " +
			"it (ulimit -n)",
		"caller": "this process has opened all 40 files and connections that it may: raise the limit before starting " +
			"it (ulimit -n)",
	} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestFewDescriptors$")
		cmd.Env = append(os.Environ(), variable+"="+how)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "limited: true") {
			t.Errorf("%s: %v\n%s\nwant %s", how, err, out, want)
		}
	}
}

// few joins with few descriptors, of which none is left while others call.
func few(t *testing.T, how string) {
	limit := uint64(40)
	if how == "lead" {
		limit = 60
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Fatal(err)
	}
	addr, processes, process := free(t), 3, 0
	switch how {
	case "before":
		processes = 500
	case "caller":
		process = 1
	}
	eat := func() (last *os.File) {
		for {
			f, err := os.Open(os.DevNull)
			if err != nil {
				return last
			}
			last = f
		}
	}
	if how == "lead" {
		go func() {
			for {
				if c, err := net.Dial("tcp", addr); err == nil {
					c.Close()
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(200 * time.Millisecond) // the lead has none pending
			eat().Close()
			_, _ = net.Dial("tcp", addr) // the caller's own end takes the last
		}()
	}
	if how == "caller" {
		_, _ = net.LookupHost("localhost")
		eat()
	}
	_, err := Join(t.Context(), Place{Addr: addr}, member(process, processes), 10*time.Second)
	var limited *Limited
	fmt.Println("limited:", errors.As(err, &limited))
	t.Fatal(err)
}
