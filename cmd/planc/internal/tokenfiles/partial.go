package tokenfiles

import (
	"bufio"
	"errors"
	"os"

	"github.com/planc-dev/planc/codegen/build"
)

// partial is a file that gets its name when it is complete.
type partial struct {
	path string
	file *os.File
	*bufio.Writer
	isClosed bool
}

func createPartial(path string) (*partial, error) {
	f, err := build.CreatePartial(path, 0o666)
	if err != nil {
		return nil, err
	}
	return &partial{path: path, file: f, Writer: bufio.NewWriterSize(f, chunkBytes)}, nil
}

// close completes the contents, which are then on the disk.
func (p *partial) close() error {
	if p.isClosed {
		return nil
	}
	p.isClosed = true
	return errors.Join(p.Flush(), p.file.Sync(), p.file.Close())
}

// publish gives the file its name.
func (p *partial) publish() error { return build.Rename(p.file.Name(), p.path) }

// discard removes the file. Nothing can be done about its errors.
func (p *partial) discard() {
	if !p.isClosed {
		p.file.Close()
	}
	os.Remove(p.file.Name())
}
