package data

import (
	"bytes"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// A file on which another program has a lease, as servers of network file systems take them, is opened when the lease
// is given back.
func TestLeasedFileIsWaitedFor(t *testing.T) {
	path := write(t, t.TempDir(), "t.txt", bytes.Repeat([]byte("text\n"), 100))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lease := func(kind uintptr) error {
		const setLease = 1024 // F_SETLEASE
		if _, _, err := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), setLease, kind); err != 0 {
			return err
		}
		return nil
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGIO)
	defer signal.Stop(asked)
	if err := lease(syscall.F_WRLCK); err != nil {
		t.Skipf("this file system has no leases: %v", err)
	}
	given := make(chan error, 1)
	go func() {
		<-asked
		given <- lease(syscall.F_UNLCK)
	}()
	s, err := Open(Spec{Train: one(path), SeqLen: 4, Vocab: 256})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := <-given; err != nil {
		t.Error(err)
	}
}
