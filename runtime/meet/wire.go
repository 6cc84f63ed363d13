package meet

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
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
	alive                   // nothing, every so often; the first says to one who calls that it is taken
	said                    // a message
	ended                   // nothing: no more comes
	fault                   // a failure
)

// magic is how a connection begins, both ways.
const magic = "planc meets 3\n"

// nonceSize is how many random bytes follow it, of which a caller's proof is made.
const nonceSize = 16

// nonces are those of a connection: of the lead and of the caller.
type nonces struct{ lead, caller [nonceSize]byte }

// proof shows that a caller knows the program's digest, without showing the digest to whoever listens. It holds for one
// connection.
func (n *nonces) proof(program string) string {
	m := hmac.New(sha256.New, []byte(program))
	m.Write([]byte(magic))
	m.Write(n.lead[:])
	m.Write(n.caller[:])
	return hex.EncodeToString(m.Sum(nil))
}

// Limits of frames: of a caller's hello, of what a waiting process is sent for each process, and of all. Memory is
// taken for what has come, not for what a frame's head announces.
const (
	helloLimit = 64 << 10
	knownLimit = 1 << 10
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
	nonces
	peer  Hello
	in    *bufio.Reader
	inbox chan []byte
	first chan error // of a process that waits to start: how its connection was before the first frame

	mutex sync.Mutex // held while a frame is written
	out   *bufio.Writer
}

// newWire is a connection that has been greeted.
func newWire(c net.Conn, n nonces) *wire {
	return &wire{Conn: c, nonces: n, in: bufio.NewReaderSize(c, 1<<16), out: bufio.NewWriterSize(c, 1<<16),
		inbox: make(chan []byte, 8), first: make(chan error, 1)}
}

// write sends a frame.
func (w *wire) write(k kind, b []byte) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	head := headOf(k, len(b))
	w.out.Write(head[:]) // an error stays until Flush
	w.out.Write(b)
	return w.out.Flush()
}

// headOf is how a frame begins.
func headOf(k kind, n int) (head [9]byte) {
	head[0] = byte(k)
	binary.LittleEndian.PutUint64(head[1:], uint64(n))
	return head
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
func (w *wire) read(limit uint64) (kind, []byte, error) { return readFrame(w.in, limit) }

// firstPiece is how many bytes of a frame memory is taken for before they have come; after that, for as many again as
// have.
const firstPiece = 4 << 10

// readFrame receives a frame of at most limit bytes.
func readFrame(from io.Reader, limit uint64) (kind, []byte, error) {
	var head [9]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, nil, err
	}
	k, n := kind(head[0]), binary.LittleEndian.Uint64(head[1:])
	if k < hello || k > fault {
		return 0, nil, errStranger
	}
	if n > limit {
		return 0, nil, fmt.Errorf("it sends %d bytes at once, and at most %d are expected", n, limit)
	}
	b := make([]byte, min(n, firstPiece))
	for filled := 0; ; {
		if _, err := io.ReadFull(from, b[filled:]); err != nil {
			return k, nil, err
		}
		filled = len(b)
		if uint64(filled) == n {
			return k, b, nil
		}
		b = append(b, make([]byte, min(n-uint64(filled), uint64(filled)))...)
	}
}

// greet exchanges the magic, so that what else listens or calls at the port is told apart, and the nonces.
func greet(c net.Conn) (own, peer [nonceSize]byte, err error) {
	_, _ = rand.Read(own[:]) // never fails
	_, err = c.Write(append([]byte(magic), own[:]...))
	if err != nil {
		return own, peer, err
	}
	b := make([]byte, len(magic))
	_, err = io.ReadFull(c, b)
	if err != nil {
		return own, peer, err
	}
	if string(b) != magic {
		return own, peer, errStranger
	}
	_, err = io.ReadFull(c, peer[:])
	return own, peer, err
}

// errStranger is of whoever does not speak as this package does.
var errStranger = errors.New("what answers there is no program of planc")

// failure is why a run fails, as it is sent.
type failure struct {
	Process int
	Text    string
	Refused bool `json:",omitempty"` // the process that is told may not take part
}

// readFailure reads what another process sends.
func readFailure(b []byte) (f failure) {
	if json.Unmarshal(b, &f) != nil {
		f = failure{Process: -1, Text: "a process sends a failure that cannot be read"}
	}
	f.Text = shortened(Lines(f.Text), textMost)
	return f
}

// joinMessages returns several messages as one, which partMessages takes apart again.
func joinMessages(all [][]byte) (joined []byte) {
	for _, b := range all {
		joined = binary.LittleEndian.AppendUint64(joined, uint64(len(b)))
		joined = append(joined, b...)
	}
	return joined
}

// partMessages returns the n messages that were joined; false if it is none of n messages.
func partMessages(joined []byte, n int) (all [][]byte, ok bool) {
	for len(joined) >= 8 && len(all) < n {
		size := binary.LittleEndian.Uint64(joined)
		joined = joined[8:]
		if size > uint64(len(joined)) {
			return nil, false
		}
		all, joined = append(all, joined[:size]), joined[size:]
	}
	return all, len(all) == n && len(joined) == 0
}
