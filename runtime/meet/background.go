package meet

// A background message is sent in pieces, and a process sends at most maxPieces before the lead has taken one. Its
// connection is therefore never blocked by a lead that takes its time, and another message waits for one piece at most.
const (
	pieceBytes = 1 << 20
	maxPieces  = 8
)

// pieceFrame is a received piece of a background message.
type pieceFrame struct {
	content []byte
	isLast  bool
}

// GatherInBackground does what Gather does. It may run concurrently with the other calls, which it neither delays nor
// disturbs, because its messages are separate from theirs.
func (p *Peers) GatherInBackground(own []byte) ([][]byte, error) {
	if !p.Lead() {
		return nil, p.sendPieces(p.wires[0], own)
	}
	all := [][]byte{own}
	for _, w := range p.wires {
		b, err := p.takePieces(w)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// sendPieces sends a background message. An empty message is one empty piece.
func (p *Peers) sendPieces(w *wire, b []byte) error {
	for {
		select {
		case <-w.credits:
		case <-p.done:
			return p.Err()
		}
		n, k := min(len(b), pieceBytes), piece
		if n == len(b) {
			k = lastPiece
		}
		if err := w.write(k, b[:n]); err != nil {
			return p.lost(w, err)
		}
		if k == lastPiece {
			return nil
		}
		b = b[n:]
	}
}

// takePieces returns the next background message of a process.
func (p *Peers) takePieces(w *wire) (message []byte, err error) {
	for {
		var f pieceFrame
		select {
		case f = <-w.pieces:
		case <-p.done:
			return nil, p.Err()
		}
		if err := w.write(credit, nil); err != nil {
			return nil, p.lost(w, err)
		}
		if f.isLast && message == nil {
			return f.content, nil
		}
		message = append(message, f.content...)
		if f.isLast {
			return message, nil
		}
	}
}

// takeFrame takes a received frame of background messages. It reports whether the other process was allowed to send it.
func (w *wire) takeFrame(k kind, b []byte) bool {
	if k == credit {
		select {
		case w.credits <- struct{}{}:
			return true
		default:
			return false
		}
	}
	select {
	case w.pieces <- pieceFrame{b, k == lastPiece}:
		return true
	default:
		return false
	}
}
