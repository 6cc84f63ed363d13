package s3

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/minio/minio-go/v7"

	"github.com/planc-dev/planc/runtime/ckpt"
)

// An object of at most minPart bytes is sent at once, a larger one in equal parts of at least that, as some stores
// require. There are at most maxParts; stores accept 10,000. uploads are sent at a time.
const (
	maxParts = 9000
	uploads  = 4
)

// minPart is a variable for tests.
var minPart = int64(16 << 20)

// writer sends an object. Its memory is uploads + 1 parts.
type writer struct {
	b       *bucket
	key     string
	size    int64
	part    []byte
	partLen int64

	id      string // of the upload in parts; "": not begun
	sent    int    // parts
	slots   chan struct{}
	running sync.WaitGroup
	isDone  bool

	mu    sync.Mutex
	parts []minio.CompletePart
	err   error // the first
}

// Create begins to write an object of a size.
func (b *bucket) Create(key string, size int64) (ckpt.ObjectWriter, error) {
	const unit = 1 << 20
	n := minPart
	if least := (size + maxParts - 1) / maxParts; least > n {
		n = (least + unit - 1) / unit * unit
	}
	return &writer{b: b, key: key, size: size, partLen: n, slots: make(chan struct{}, uploads)}, nil
}

func (w *writer) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		k := min(len(p), int(w.partLen)-len(w.part))
		w.part = append(w.part, p[:k]...)
		p, n = p[k:], n+k
		if int64(len(w.part)) == w.partLen && w.size > w.partLen {
			if err := w.send(); err != nil {
				return n, err
			}
		}
	}
	return n, w.failure()
}

func (w *writer) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// send sends the next part while the caller fills another.
func (w *writer) send() error {
	if w.id == "" {
		ctx, cancel := within()
		defer cancel()
		id, err := w.b.core.NewMultipartUpload(ctx, w.b.name, w.key, minio.PutObjectOptions{})
		if err != nil {
			return w.b.explain("begin upload of", w.key, err)
		}
		w.id = id
	}
	w.slots <- struct{}{}
	if err := w.failure(); err != nil {
		<-w.slots
		return err
	}
	data, number := w.part, w.sent+1
	w.part, w.sent = nil, number
	w.parts = append(w.parts, minio.CompletePart{PartNumber: number})
	w.running.Go(func() {
		defer func() { <-w.slots }()
		ctx, cancel := within()
		defer cancel()
		// the hash is in the signature, so that the store refuses a part that has changed on the way
		sum := sha256.Sum256(data)
		done, err := w.b.core.PutObjectPart(ctx, w.b.name, w.key, w.id, number, bytes.NewReader(data), int64(len(data)),
			minio.PutObjectPartOptions{Sha256Hex: hex.EncodeToString(sum[:]), DisableContentSha256: true})
		w.mu.Lock()
		defer w.mu.Unlock()
		w.parts[number-1].ETag = done.ETag
		if err != nil && w.err == nil {
			w.err = w.b.explain(fmt.Sprintf("upload part %d of", number), w.key, err)
		}
	})
	return nil
}

// Sync makes the object appear.
func (w *writer) Sync() error {
	ctx, cancel := within()
	defer cancel()
	if w.id == "" {
		sum := sha256.Sum256(w.part)
		_, err := w.b.core.PutObject(ctx, w.b.name, w.key, bytes.NewReader(w.part), int64(len(w.part)), "",
			hex.EncodeToString(sum[:]), minio.PutObjectOptions{DisableContentSha256: true})
		w.isDone = err == nil
		return w.b.explain("upload", w.key, err)
	}
	if len(w.part) > 0 {
		if err := w.send(); err != nil {
			return err
		}
	}
	w.running.Wait()
	if err := w.failure(); err != nil {
		return err
	}
	_, err := w.b.core.CompleteMultipartUpload(ctx, w.b.name, w.key, w.id, w.parts, minio.PutObjectOptions{})
	w.isDone = err == nil
	return w.b.explain("complete upload of", w.key, err)
}

// Close removes the parts of an object that was not finished. The error of the write is the one that matters.
func (w *writer) Close() error {
	w.running.Wait()
	if w.id == "" || w.isDone {
		return nil
	}
	ctx, cancel := within()
	defer cancel()
	return errors.Join(w.failure(), w.b.explain("abort upload of", w.key,
		w.b.core.AbortMultipartUpload(ctx, w.b.name, w.key, w.id)))
}
