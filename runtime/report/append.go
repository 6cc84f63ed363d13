package report

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// appender appends to a file. After the first error it drops everything, and err holds that error.
type appender struct {
	f    *os.File // nil in processes that do not write
	what string   // what the file holds
	size int64    // bytes of complete lines or records
	err  error
}

// append writes complete lines or records. It removes one that is only partly written.
func (a *appender) append(b []byte) {
	if a.f == nil || a.err != nil {
		return
	}
	n, err := a.f.Write(b)
	if err == nil {
		a.size += int64(n)
		return
	}
	if n > 0 {
		a.f.Truncate(a.size)
	}
	a.fail("write", err)
}

// sync makes what was written durable.
func (a *appender) sync() {
	if a.f == nil || a.err != nil {
		return
	}
	if err := a.f.Sync(); err != nil {
		a.fail("sync", err)
	}
}

// fail stores the error that ends writing, with advice.
func (a *appender) fail(verb string, err error) {
	hint := "; --log-dir chooses another folder"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		hint = "; free some space, or choose another folder with --log-dir"
	}
	a.err = fmt.Errorf("cannot %s %s: %w%s", verb, a.what, err, hint)
}

// close closes the file.
func (a *appender) close() {
	if a.f != nil {
		a.f.Close()
	}
}
