//go:build unix

package data

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Nobody writes to the FIFO: to open it without O_NONBLOCK would wait for ever.
func TestFIFOAndSocketAreRefused(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "pipe.txt")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, want := range map[string]string{
		"pipe.txt": "data: DIR/pipe.txt is a FIFO (a pipe), not a file: data must be a regular file, because it is " +
			"read at arbitrary positions; write its output to a file first: cat DIR/pipe.txt >data.txt",
		"socket.txt": "data: DIR/socket.txt is a socket, not a file: data must be a regular file, because it is read " +
			"at arbitrary positions",
	} {
		done := make(chan error, 1)
		go func() {
			_, err := Open(Spec{Train: one(filepath.Join(dir, name)), SeqLen: 4, Vocab: 256})
			done <- err
		}()
		select {
		case err := <-done:
			wantInputError(t, err, dir, want)
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: opening it waits", name)
		}
	}
}

// A file that may not be read is the environment's failure, not the user's data.
func TestUnreadableFileIsAReadError(t *testing.T) {
	path := write(t, t.TempDir(), "t.txt", make([]byte, 100))
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(path); err == nil {
		f.Close()
		t.Skip("this user may read everything")
	}
	_, err := Open(Spec{Train: one(path), SeqLen: 4, Vocab: 256})
	var failed *ReadError
	if !errors.As(err, &failed) || failed.File != path ||
		err.Error() != "data: "+path+" cannot be read: permission denied" {
		t.Errorf("got %v (%T), want a ReadError", err, err)
	}
}
