package meet

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// kind is what a frame is: a byte, the length of what follows in 8 bytes, and that.
type kind byte

const (
	hello kind = iota + 'a' // a Hello, of one who calls
	known                   // []Hello, of all: joined
	alive                   // nothing, every so often
	said                    // a message
	ended                   // nothing: no more comes
	fault                   // a failure
)

// magic is how a connection begins, both ways.
const magic = "planc meets 1\n"

// Limits of frames: of those before a peer is known, and of all.
const (
	helloLimit = 64 << 10
	frameLimit = 1 << 34
)

// How long it is quiet at most while a process lives, and how often it says so.
var (
	quiet  = time.Minute
	remind = 5 * time.Second
)

// wire is a connection to another process.
type wire struct {
	net.Conn
	peer  Hello
	in    *bufio.Reader
	inbox chan []byte

	mutex sync.Mutex // held while a frame is written
	out   *bufio.Writer
}

func newWire(c net.Conn) *wire {
	return &wire{Conn: c, in: bufio.NewReaderSize(c, 1<<16), out: bufio.NewWriterSize(c, 1<<16), inbox: make(chan []byte, 8)}
}

// write sends a frame.
func (w *wire) write(k kind, b []byte) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var head [9]byte
	head[0] = byte(k)
	binary.LittleEndian.PutUint64(head[1:], uint64(len(b)))
	w.out.Write(head[:]) // an error stays until Flush
	w.out.Write(b)
	return w.out.Flush()
}

// tell sends a value.
func (w *wire) tell(k kind, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.write(k, b)
}

// read receives a frame.
func (w *wire) read(limit uint64) (kind, []byte, error) {
	var head [9]byte
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint64(head[1:])
	if n > limit {
		return 0, nil, fmt.Errorf("it sends %d bytes at once, where at most %d are expected", n, limit)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(w.in, b)
	return kind(head[0]), b, err
}

// greet exchanges the magic, so that what else listens or calls at the port is told apart.
func (w *wire) greet() error {
	if _, err := io.WriteString(w.Conn, magic); err != nil {
		return err
	}
	b := make([]byte, len(magic))
	if _, err := io.ReadFull(w.in, b); err != nil {
		return err
	}
	if string(b) != magic {
		return errStranger
	}
	return nil
}

// errStranger is of whoever does not speak as this package does.
var errStranger = fmt.Errorf("what answers there is no program of planc")

// failure is why a run fails, as it is sent.
type failure struct {
	Process int
	Text    string
}
