package data

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Intervals at which a file that is being read is checked.
const (
	lookEvery = time.Second      // size and modification time: one system call
	nameEvery = 10 * time.Second // name: looks up folders, which may be on another machine
	hashEvery = time.Minute      // contents, even if the modification time is unchanged, because it can be set
)

// The part of a file's contents that is compared: blocks that are evenly spread from the first byte to the last.
const (
	hashBlocks     = 8
	hashBlockBytes = 4 << 10
)

// watch holds the state of a file when training began to read it.
type watch struct {
	notice func(text string) // may be nil

	ready atomic.Bool  // hash is set
	next  atomic.Int64 // time of the next check, in nanoseconds

	mutex                              sync.Mutex // guards the fields below
	hash                               [sha256.Size]byte
	modified                           time.Time
	hashed, named                      time.Time // times of the last checks
	gaveLonger, gaveChanged, gaveMoved bool      // notices that were given: only once each
}

// begin computes the hash of the file's contents once, before they are first read.
func (t *tokenFile) begin() error {
	w := &t.watch
	if w.ready.Load() {
		return nil
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.ready.Load() {
		return nil
	}
	now := time.Now()
	var err error
	w.hash, err = t.sample()
	if err != nil {
		return err
	}
	w.modified, w.hashed, w.named = t.info.ModTime(), now, now
	w.ready.Store(true)
	return nil
}

// sample returns a hash of parts of the contents that the file had when it was opened.
func (t *tokenFile) sample() (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	b := make([]byte, hashBlockBytes)
	rest := max(0, t.info.Size()-hashBlockBytes)
	for i := range int64(hashBlocks) {
		at := rest / (hashBlocks - 1) * i
		if i == hashBlocks-1 {
			at = rest
		}
		part := b[:min(hashBlockBytes, t.info.Size())]
		if err := t.readAt(part, at); err != nil {
			return sum, err
		}
		h.Write(part)
		if rest == 0 {
			break
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// Sampled returns a hash of parts of the contents of all files in order. It reads at most 32 KiB of each file, and only
// in the first call. Checkpoints store it, so its definition must not change.
func (s *Set) Sampled() (string, error) {
	h := sha256.New()
	for _, f := range s.files {
		if err := f.begin(); err != nil {
			return "", err
		}
		h.Write(f.watch.hash[:])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// unchanged checks the file if the interval has passed. A ChangedError means that what was read since the last check
// may be other contents.
func (t *tokenFile) unchanged() error {
	if time.Now().UnixNano() < t.watch.next.Load() {
		return nil
	}
	return t.look()
}

// look checks the file, unless another goroutine is doing so.
func (t *tokenFile) look() error {
	w := &t.watch
	if !w.mutex.TryLock() {
		return nil
	}
	defer w.mutex.Unlock()
	now := time.Now()
	if err := t.compare(now); err != nil {
		w.next.Store(0) // so that each read reports it
		return err
	}
	w.next.Store(now.Add(lookEvery).UnixNano())
	return nil
}

func (t *tokenFile) compare(now time.Time) error {
	w := &t.watch
	info, err := t.file.Stat()
	if err != nil {
		return readError(t.path, err)
	}
	if info.Size() < t.info.Size() {
		return t.truncated(info.Size())
	}
	written := !info.ModTime().Equal(w.modified)
	if written || now.Sub(w.hashed) >= hashEvery {
		hash, err := t.sample()
		if err != nil {
			return err
		}
		if hash != w.hash {
			return t.overwritten(info.Size())
		}
		w.hashed, w.modified = now, info.ModTime()
	}
	if info.Size() > t.info.Size() {
		w.once(&w.gaveLonger, "data: %s has grown while training, from %d to %d bytes: this run trains on the first "+
			"%[2]d; a resumed run would read all of them, "+
			"and its samples would differ", t.path, t.info.Size(), info.Size())
	} else if written {
		w.once(&w.gaveChanged, "data: %s was written to while training: its size and the %d blocks of it that are "+
			"compared are unchanged; "+
			"if other parts changed, this run is not reproducible", t.path, hashBlocks)
	}
	if now.Sub(w.named) >= nameEvery {
		w.named = now
		t.lookAtName()
	}
	return nil
}

// lookAtName detects that another file now has the file's name. The file that was opened is still read.
func (t *tokenFile) lookAtName() {
	w := &t.watch
	info, err := os.Stat(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.once(&w.gaveMoved, "data: %s was deleted while training: this run still reads the file that it opened, but "+
			"a resumed run cannot", t.path)
	case err == nil && !os.SameFile(info, t.info):
		w.once(&w.gaveMoved, "data: %s was replaced while training: this run still reads the file that it opened, but "+
			"a resumed run would read the new one", t.path)
	}
}

// once gives a notice unless it was given before.
func (w *watch) once(given *bool, format string, args ...any) {
	if !*given && w.notice != nil {
		w.notice(fmt.Sprintf(format, args...))
	}
	*given = true
}

// ended returns the error for a file that has fewer bytes than when it was opened.
func (t *tokenFile) ended() error {
	info, err := t.file.Stat()
	if err == nil && info.Size() < t.info.Size() {
		return t.truncated(info.Size())
	}
	return readError(t.path, io.ErrUnexpectedEOF)
}

func (t *tokenFile) truncated(size int64) error {
	was := t.info.Size()
	return &ChangedError{t.path, was, size,
		fmt.Sprintf("data: %s was truncated while training: it had %d bytes when it was opened, and has %d now; "+
			"restore the complete file, then start the run again", t.path, was, size)}
}

func (t *tokenFile) overwritten(size int64) error {
	return &ChangedError{t.path, t.info.Size(), size,
		fmt.Sprintf("data: %s was overwritten while training: it had %d bytes when it was opened and has %d now, "+
			"and its contents have changed; restore the old file, then start the run again; "+
			"to train on the new contents, start over with --resume never", t.path, t.info.Size(), size)}
}
