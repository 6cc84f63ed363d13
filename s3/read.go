package s3

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/planc-dev/planc/runtime/ckpt"
)

// Objects are read in blocks. ahead blocks after the one that is read are fetched at the same time, and kept blocks
// stay in memory.
const (
	ahead = 3
	kept  = 2 * (ahead + 1)
)

// blockBytes is a variable for tests.
var blockBytes = int64(8 << 20)

// reader reads an object, as it was when it was opened.
type reader struct {
	b    *bucket
	key  string
	etag string
	size int64
	at   int64 // of Read

	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	blocks map[int64]*block
	used   []int64 // numbers of blocks, the last used one last
}

// block is a part of an object; ready is closed when it is fetched.
type block struct {
	ready chan struct{}
	data  []byte
	err   error
}

// Open opens an object.
func (b *bucket) Open(key string) (ckpt.ObjectReader, int64, error) {
	ctx, cancel := within()
	defer cancel()
	info, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	if err != nil {
		return nil, 0, b.explain("read", key, err)
	}
	r := &reader{b: b, key: key, etag: info.ETag, size: info.Size, blocks: map[int64]*block{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, info.Size, nil
}

func (r *reader) Read(p []byte) (int, error) {
	if r.at >= r.size {
		return 0, io.EOF
	}
	n, err := r.ReadAt(p[:min(int64(len(p)), r.size-r.at)], r.at)
	r.at += int64(n)
	return n, err
}

func (r *reader) ReadAt(p []byte, at int64) (n int, err error) {
	for len(p) > 0 {
		if at >= r.size {
			return n, io.EOF
		}
		b := r.block(at / blockBytes)
		<-b.ready
		if b.err != nil {
			return n, b.err
		}
		k := copy(p, b.data[at%blockBytes:])
		p, n, at = p[k:], n+k, at+int64(k)
	}
	return n, nil
}

// block returns a block, and begins to fetch those after it.
func (r *reader) block(i int64) *block {
	r.mu.Lock()
	defer r.mu.Unlock()
	for j := i + ahead; j > i; j-- {
		r.fetch(j)
	}
	return r.fetch(i)
}

// fetch begins to fetch a block, unless it is in memory. A block that could not be fetched is fetched again.
func (r *reader) fetch(i int64) *block {
	begin := i * blockBytes
	if begin >= r.size {
		return nil
	}
	if b := r.blocks[i]; b != nil {
		select {
		case <-b.ready:
			if b.err == nil {
				return b
			}
		default:
			return b
		}
	} else {
		r.used = append(r.used, i)
		if len(r.used) > kept {
			delete(r.blocks, r.used[0])
			r.used = r.used[1:]
		}
	}
	b := &block{ready: make(chan struct{}), data: make([]byte, min(blockBytes, r.size-begin))}
	r.blocks[i] = b
	go func() {
		defer close(b.ready)
		b.err = r.b.explain("read", r.key, r.download(b.data, begin))
	}()
	return b
}

// download reads a part of the object. If the connection is cut, it continues.
func (r *reader) download(data []byte, begin int64) error {
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	pause := minio.DefaultRetryUnit
	var failed error
	for range attempts {
		n, err := r.request(ctx, data, begin)
		if err == nil {
			return nil
		}
		failed, data, begin = err, data[n:], begin+int64(n)
		if code := minio.ToErrorResponse(err).StatusCode; code >= 400 && code < 500 {
			break
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, minio.DefaultRetryCap)
	}
	return failed
}

// request reads a part of the object with one request, and returns how many bytes it got.
func (r *reader) request(ctx context.Context, data []byte, begin int64) (int, error) {
	var o minio.GetObjectOptions
	if err := o.SetRange(begin, begin+int64(len(data))-1); err != nil {
		return 0, err
	}
	if err := o.SetMatchETag(r.etag); err != nil {
		return 0, err
	}
	body, info, _, err := r.b.core.GetObject(ctx, r.b.name, r.key, o)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	if info.Size != int64(len(data)) {
		return 0, fmt.Errorf("the store sent %d bytes in place of %d", info.Size, len(data))
	}
	return io.ReadFull(body, data)
}

// Close ends all requests.
func (r *reader) Close() error {
	r.cancel()
	return nil
}
