package runtime

import (
	"errors"
	"testing"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/rank"
)

// absent is a machine without the devices.
type absent struct{ rank.Devices }

func (absent) Open(*Team) (string, error) { return "", errors.New("no GPU here") }

// On a machine that cannot run it, a program says so, and not that its data is not there either.
func TestTheMachineComesBeforeTheData(t *testing.T) {
	p := bigram[float32](1, 0)
	p.Devices = absent{}
	_, err := train(t, p, t.TempDir(), Data(nil))
	wantExit(t, err, exit.Cannot, "no GPU here")
	p.Devices = nil
	_, err = train(t, p, t.TempDir(), Data(nil))
	wantExit(t, err, exit.Input)
}
