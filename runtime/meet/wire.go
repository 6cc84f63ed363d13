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

// kind is the type of a frame. A frame is this byte, the length of its content in 8 bytes, and the content.
type kind byte

const (
	hello     kind = iota + 'a' // a Hello from a caller
	members                     // []Hello of all processes: joining is complete
	alive                       // empty, sent at intervals; the first one tells a caller that it was accepted
	payload                     // a message
	ended                       // empty: the last frame
	fault                       // a failure
	piece                       // a part of a background message, but not the last
	lastPiece                   // the last part of a background message
	credit                      // empty: a piece was taken, so that one more may be sent
)

// magic begins a connection in both directions.
const magic = "planc meets 4\n"

// nonceSize is the number of random bytes that follow the magic. A caller's proof depends on them.
const nonceSize = 16

// nonces are the random bytes of a connection, of the lead and of the caller.
type nonces struct{ lead, caller [nonceSize]byte }

// proof shows that a caller knows the program's digest without revealing the digest. It is valid for one connection.
func (n *nonces) proof(program string) string {
	m := hmac.New(sha256.New, []byte(program))
	m.Write([]byte(magic))
	m.Write(n.lead[:])
	m.Write(n.caller[:])
	return hex.EncodeToString(m.Sum(nil))
}

// Limits of frames in bytes: of a caller's hello, of what a waiting process receives per process, and of all others.
// Memory is allocated for received bytes, not for the length in a frame's header.
const (
	helloLimit = 64 << 10
	knownLimit = 1 << 10
	frameLimit = 1 << 34
)

// quiet is the maximum silence of a live process, and remind the interval of its alive frames.
var (
	quiet  = time.Minute
	remind = 5 * time.Second
)

// wire is a connection to another process.
type wire struct {
	net.Conn
	nonces
	peer    Hello
	in      *bufio.Reader
	inbox   chan []byte
	pieces  chan pieceFrame // received pieces of background messages
	credits chan struct{}   // one for each piece that may be sent
	first   chan error      // state of the connection before the first frame, for a process that waits to start

	mutex sync.Mutex // held while a frame is written
	out   *bufio.Writer
}

// newWire returns a connection whose greeting is complete.
func newWire(c net.Conn, n nonces) *wire {
	w := &wire{Conn: c, nonces: n, in: bufio.NewReaderSize(c, 1<<16), out: bufio.NewWriterSize(c, 1<<16),
		inbox: make(chan []byte, 8), first: make(chan error, 1), pieces: make(chan pieceFrame, maxPieces),
		credits: make(chan struct{}, maxPieces)}
	for range maxPieces {
		w.credits <- struct{}{}
	}
	return w
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

// headOf returns the header of a frame.
func headOf(k kind, n int) (head [9]byte) {
	head[0] = byte(k)
	binary.LittleEndian.PutUint64(head[1:], uint64(n))
	return head
}

// sendValue sends a value as JSON.
func (w *wire) sendValue(k kind, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.write(k, b)
}

// read receives a frame.
func (w *wire) read(limit uint64) (kind, []byte, error) { return readFrame(w.in, limit) }

// firstPiece is the number of bytes that are allocated for a frame before any have arrived. After that the buffer
// doubles.
const firstPiece = 4 << 10

// readFrame receives a frame of at most limit bytes.
func readFrame(from io.Reader, limit uint64) (kind, []byte, error) {
	var head [9]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, nil, err
	}
	k, n := kind(head[0]), binary.LittleEndian.Uint64(head[1:])
	if k < hello || k > credit {
		return 0, nil, errUnknownPeer
	}
	if n > limit {
		return 0, nil, fmt.Errorf("it sends %d bytes at once, but at most %d are expected", n, limit)
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

// greet exchanges the magic, which identifies planc's processes, and the nonces.
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
		return own, peer, errUnknownPeer
	}
	_, err = io.ReadFull(c, peer[:])
	return own, peer, err
}

// errUnknownPeer is returned for a peer that does not speak this protocol.
var errUnknownPeer = errors.New("the process that answers there is not a planc program")

// failure is the reason for which a run fails, as it is sent.
type failure struct {
	Process int
	Text    string
	Refused bool `json:",omitempty"` // the receiver may not take part in the launch
}

// readFailure decodes a failure from another process.
func readFailure(b []byte) (f failure) {
	if json.Unmarshal(b, &f) != nil {
		f = failure{Process: -1, Text: "a process sent a failure that cannot be decoded"}
	}
	f.Text = shortened(Lines(f.Text), maxText)
	return f
}

// joinMessages packs several messages into one, which partMessages unpacks.
func joinMessages(all [][]byte) (joined []byte) {
	for _, b := range all {
		joined = binary.LittleEndian.AppendUint64(joined, uint64(len(b)))
		joined = append(joined, b...)
	}
	return joined
}

// partMessages returns the n messages that were packed; false if the content is invalid.
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
