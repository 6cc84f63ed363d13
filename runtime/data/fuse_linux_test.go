package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slowDisk is a file system in user space with one file, whose reads end when and how a test wants. It stands for a
// disk that is slow, hangs or fails.
type slowDisk struct {
	fd   int // of /dev/fuse
	size int64
	read func(off int64, b []byte) syscall.Errno
}

// mountSlowDisk mounts a disk and returns the path of its file.
func mountSlowDisk(t testing.TB, name string, d *slowDisk) string {
	t.Helper()
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no FUSE here: %v", err)
	}
	dir := t.TempDir()
	if err := syscall.Mount("planc", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0",
		fd)); err != nil {
		syscall.Close(fd)
		t.Skipf("FUSE may not be mounted here: %v", err)
	}
	d.fd = fd
	ended := make(chan struct{})
	t.Cleanup(func() {
		syscall.Unmount(dir, syscall.MNT_DETACH)
		select {
		case <-ended: // else serve would answer for the disk that gets the number of this descriptor next
			syscall.Close(fd)
		case <-time.After(5 * time.Second):
		}
	})
	go func() { defer close(ended); d.serve() }()
	return filepath.Join(dir, name)
}

// serve answers the kernel until the disk is unmounted. Layouts are those of linux/fuse.h, version 7.31.
func (d *slowDisk) serve() {
	b := make([]byte, 1<<17)
	for {
		n, err := syscall.Read(d.fd, b)
		if err == syscall.EINTR || err == syscall.ENOENT {
			continue
		}
		if err != nil || n < 40 {
			return
		}
		le := binary.LittleEndian
		op, unique, node, body := le.Uint32(b[4:]), le.Uint64(b[8:]), le.Uint64(b[16:]), b[40:n]
		switch op {
		case 1: // LOOKUP
			out := le.AppendUint64(nil, 2)
			d.answer(unique, 0, append(append(out, make([]byte, 32)...), d.attributes(2)...))
		case 3: // GETATTR
			d.answer(unique, 0, append(make([]byte, 16), d.attributes(node)...))
		case 14: // OPEN, past the page cache
			d.answer(unique, 0, le.AppendUint64(le.AppendUint64(nil, 1), 1))
		case 15: // READ
			off, size := int64(le.Uint64(body[8:])), int64(le.Uint32(body[16:]))
			go func() {
				out := make([]byte, max(0, min(size, d.size-off)))
				errno := d.read(off, out)
				d.answer(unique, errno, out)
			}()
		case 26: // INIT
			out := make([]byte, 64)
			le.PutUint32(out, 7)
			le.PutUint32(out[4:], 31)
			le.PutUint32(out[20:], 1<<16)
			d.answer(unique, 0, out)
		case 2, 36, 42: // FORGET, INTERRUPT, BATCH_FORGET have no answer
		case 18, 25, 34: // RELEASE, FLUSH, ACCESS
			d.answer(unique, 0, nil)
		default:
			d.answer(unique, syscall.ENOSYS, nil)
		}
	}
}

func (d *slowDisk) answer(unique uint64, errno syscall.Errno, body []byte) {
	if errno != 0 {
		body = nil
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(16+len(body)))
	out = binary.LittleEndian.AppendUint32(out, uint32(-int32(errno)))
	out = binary.LittleEndian.AppendUint64(out, unique)
	syscall.Write(d.fd, append(out, body...))
}

// attributes are those of the folder, which is node 1, or of the file.
func (d *slowDisk) attributes(node uint64) []byte {
	b := make([]byte, 88)
	le := binary.LittleEndian
	le.PutUint64(b, node)
	mode := uint32(syscall.S_IFDIR | 0o755)
	if node != 1 {
		le.PutUint64(b[8:], uint64(d.size))
		mode = syscall.S_IFREG | 0o644
	}
	le.PutUint32(b[60:], mode)
	le.PutUint32(b[64:], 1)
	return b
}

// within wants f to end in time.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not end", what)
	}
}

// An I/O error that takes its time is an error: of a mapped file it would be a signal, which never arrives where others
// interrupt the wait for it.
func TestSlowIOErrorIsAnError(t *testing.T) {
	fails := make(chan struct{})
	d := &slowDisk{size: 1 << 20, read: func(off int64, b []byte) syscall.Errno {
		select {
		case <-fails:
			time.Sleep(30 * time.Millisecond)
			return syscall.EIO
		default:
			return 0
		}
	}}
	path := mountSlowDisk(t, "t.txt", d)
	s := open(t, Spec{Train: one(path), SeqLen: 1 << 10, Vocab: 256})
	x, y := make([]int32, 1<<10), make([]int32, 1<<10)
	if _, err := s.Train(0, x, y); err != nil {
		t.Fatal(err)
	}
	close(fails)
	within(t, "a read that fails", func() {
		spin := make(chan struct{})
		defer close(spin)
		go func() { // a goroutine that the scheduler preempts by signals, as a rank's is
			for n := 0; ; n++ {
				select {
				case <-spin:
					return
				default:
				}
			}
		}()
		_, err := s.Train(1, x, y)
		var failed *ReadError
		if !errors.As(err, &failed) || failed.File != path || !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v (%T), want a ReadError", err, err)
			return
		}
		if got, want := strings.ReplaceAll(err.Error(), path, "FILE"),
			"data: FILE cannot be read: input/output error"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A file whose disk hangs can be closed while it is read.
func TestCloseDoesNotWaitForTheDisk(t *testing.T) {
	hangs, reads := make(chan struct{}), make(chan struct{}, 9)
	release := make(chan struct{})
	d := &slowDisk{size: 1 << 20, read: func(off int64, b []byte) syscall.Errno {
		select {
		case <-hangs:
			reads <- struct{}{}
			<-release
		default:
		}
		return 0
	}}
	path := mountSlowDisk(t, "t.txt", d)
	s, err := Open(Spec{Train: one(path), SeqLen: 1 << 10, Vocab: 256})
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]int32, 1<<10), make([]int32, 1<<10)
	if _, err := s.Train(0, x, y); err != nil {
		t.Fatal(err)
	}
	close(hangs)
	ended := make(chan struct{})
	go func() { defer close(ended); s.Train(1, x, y) }()
	<-reads
	within(t, "to close a file that is read", func() {
		if err := s.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	close(release)
	<-ended
}
