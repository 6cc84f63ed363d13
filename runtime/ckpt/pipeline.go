package ckpt

import (
	"crypto/sha256"
	"errors"
	"io"
	"sync"
)

// A pipeline has pipelineChunks buffers of pipelineBytes. Writes of 1 MiB reach the speed of disks.
const (
	pipelineBytes  = 1 << 20
	pipelineChunks = 4
)

// errWriting is what Write returns after the file could not be written; close returns the cause.
var errWriting = errors.New("the file could not be written")

// pipeline writes to a file, and computes the hash of what it writes. Both overlap with each other and with the caller,
// so that the slowest of the three determines the speed.
type pipeline struct {
	free    chan *chunkBuffer
	hashed  chan *chunkBuffer // chunks to hash
	written chan *chunkBuffer // chunks to write
	running sync.WaitGroup
	current *chunkBuffer // that Write fills; nil: none
	sum     interface {
		io.Writer
		Sum(b []byte) []byte
	}
	size   int64
	failed chan struct{} // closed by the first error of the file
	err    error         // that error
}

// chunkBuffer is free again when it is hashed and written.
type chunkBuffer struct {
	data    []byte
	hashing sync.WaitGroup
}

// chunkBuffers has the buffers of finished files for the next ones.
var chunkBuffers = sync.Pool{New: func() any { return &chunkBuffer{data: make([]byte, 0, pipelineBytes)} }}

func newPipeline(file io.Writer) *pipeline {
	p := &pipeline{free: make(chan *chunkBuffer, pipelineChunks), hashed: make(chan *chunkBuffer, pipelineChunks),
		written: make(chan *chunkBuffer, pipelineChunks), sum: sha256.New(), failed: make(chan struct{})}
	for range pipelineChunks {
		p.free <- chunkBuffers.Get().(*chunkBuffer)
	}
	p.running.Go(func() {
		for b := range p.hashed {
			p.sum.Write(b.data)
			b.hashing.Done()
		}
	})
	p.running.Go(func() {
		for b := range p.written {
			p.writeChunk(file, b.data)
			b.hashing.Wait()
			b.data = b.data[:0]
			p.free <- b
		}
	})
	return p
}

// writeChunk writes to the file, unless that has failed before.
func (p *pipeline) writeChunk(file io.Writer, data []byte) {
	if p.err != nil {
		return
	}
	_, p.err = file.Write(data)
	if p.err != nil {
		close(p.failed)
	}
}

// Write fails with errWriting if the file could not be written.
func (p *pipeline) Write(data []byte) (n int, err error) {
	for len(data) > 0 {
		if p.current == nil {
			select {
			case <-p.failed:
				return n, errWriting
			case p.current = <-p.free:
			}
		}
		b := p.current
		k := min(len(data), cap(b.data)-len(b.data))
		b.data = append(b.data, data[:k]...)
		data, n = data[k:], n+k
		if len(b.data) == cap(b.data) {
			p.send()
		}
	}
	return n, nil
}

// send passes the current chunk on.
func (p *pipeline) send() {
	b := p.current
	p.current, p.size = nil, p.size+int64(len(b.data))
	b.hashing.Add(1)
	p.hashed <- b
	p.written <- b
}

// close waits until all is written, and returns the hash, the number of bytes and the first error of the file.
func (p *pipeline) close() (sum []byte, size int64, err error) {
	if p.current != nil && len(p.current.data) > 0 {
		p.send()
	}
	close(p.hashed)
	close(p.written)
	p.running.Wait()
	close(p.free)
	for b := range p.free {
		chunkBuffers.Put(b)
	}
	return p.sum.Sum(nil), p.size, p.err
}
