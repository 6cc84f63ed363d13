package meet

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// Background messages of any size arrive in order while other messages are exchanged, even if the lead takes none of
// them for a while.
func TestGatherInBackground(t *testing.T) {
	peers := met(t, 3)
	sizes := []int{0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 0, (maxPieces + 3) * pieceBytes, 7}
	message := func(process, turn int) []byte {
		return bytes.Repeat([]byte{byte(16*process + turn)}, sizes[(process+turn)%len(sizes)])
	}
	exchanged := make(chan struct{})
	var all sync.WaitGroup
	for i, p := range peers {
		var background sync.WaitGroup
		background.Go(func() {
			if p.Lead() {
				<-exchanged
			}
			for turn := range 2 * len(sizes) {
				got, err := p.GatherInBackground(message(i, turn))
				if err != nil {
					t.Error(err)
					return
				}
				for j, b := range got {
					if !bytes.Equal(b, message(j, turn)) {
						t.Errorf("turn %d: %d bytes of process %d, want %d", turn, len(b), j, len(message(j, turn)))
					}
				}
			}
		})
		all.Go(func() {
			defer p.Close()
			for turn := range 50 {
				got, err := p.Exchange(fmt.Append(nil, i, turn))
				if err != nil || string(got[2]) != fmt.Sprint(2, " ", turn) {
					t.Errorf("turn %d: %q, %v", turn, got, err)
					return
				}
			}
			if p.Lead() {
				close(exchanged)
			}
			background.Wait()
		})
	}
	all.Wait()
}

// When a process ends, those that send or wait for background messages get its error.
func TestBackgroundMessagesOfALostProcess(t *testing.T) {
	for lost := range 2 {
		peers := met(t, 3)
		ended := make(chan error, 2)
		for i, p := range peers {
			if i == lost {
				continue
			}
			go func() {
				var err error
				for err == nil { // a process waits for the lead after some messages
					_, err = p.GatherInBackground(make([]byte, pieceBytes))
				}
				ended <- err
			}()
		}
		time.Sleep(50 * time.Millisecond)
		peers[lost].Fail(errors.New("a full disk"))
		for range 2 {
			select {
			case err := <-ended:
				if !strings.HasSuffix(err.Error(), fmt.Sprintf("on h%d has failed: a full disk", lost)) {
					t.Errorf("%d is lost: %v", lost, err)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%d is lost: a process goes on waiting", lost)
			}
		}
		for _, p := range peers {
			p.Close()
		}
	}
}

// A process that sends more pieces than it may is refused, so that it cannot use up memory.
func TestTooManyPieces(t *testing.T) {
	peers := met(t, 2)
	for range maxPieces + 1 {
		_ = peers[1].wires[0].write(piece, []byte("x"))
	}
	select {
	case <-peers[0].Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the lead takes them")
	}
	if want := "the process of ranks 2 to 3 on h1 sent more than was asked for"; peers[0].Err().Error() != want {
		t.Errorf("%v\nwant %s", peers[0].Err(), want)
	}
	for _, p := range peers {
		p.Close()
	}
}
