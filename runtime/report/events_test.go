package report

import (
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Records equal those of TensorBoard 2.21.0's own writer (tensorboard.summary.writer.record_writer and its protocol
// buffers), which made the hexadecimal text.
func TestEventsEqualTensorBoards(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "events"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := events{appender: appender{f: f}}
	e.begin(time.UnixMilli(1500), 300)
	e.scalar("loss", 2.5)
	e.element("gpu_util", 0, math.Inf(1))
	e.end()
	e.begin(time.UnixMilli(1500), 301)
	e.end()
	got, err := os.ReadFile(f.Name())
	if err != nil || e.err != nil {
		t.Fatal(err, e.err)
	}
	const want = "2e00000000000000c5cb57fa09000000000000f83f10ac022a20" +
		"0a0b0a046c6f737315000020400a110a0a6770755f7574696c2f30150000807f2b613559"
	if hex.EncodeToString(got) != want {
		t.Errorf("%x, want %s", got, want)
	}
}
