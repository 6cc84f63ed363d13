package visible

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plan  dp 8 · zero 3\n\tstep ± 11 %\r\n": "plan  dp 8 · zero 3\n\tstep ± 11 %\r\n",
		"a\x1b[31mred\x1b]0;title\a":             `a\u001b[31mred\u001b]0;title\u0007`,
		"line\rover":                             `line\u000dover`,
		"c1 \u009b31m raw \x9b":                  `c1 \u009b31m raw \x9b`,
		"job\u202elmay.":                         `job\u202elmay.`,
		"\ufeffx\u200by\u00ad\u2028\U000e0041":   `\ufeffx\u200by\u00ad\u2028\udb40\udc41`,
		"naïve 日本 \u00a0 \ufffd":                 "naïve 日本 \u00a0 \ufffd",
		"":                                       "",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) is %q, want %q", in, got, want)
		}
	}
}

// JSON stays JSON, and means the same.
func TestWriterKeepsJSON(t *testing.T) {
	var b bytes.Buffer
	const name = "a\u009b\u202eb\U000e0041"
	if err := json.NewEncoder(Writer(&b)).Encode(map[string]string{"name": name}); err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got["name"] != name ||
		bytes.ContainsRune(b.Bytes(), '\u202e') {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestName(t *testing.T) {
	for name, want := range map[string]bool{"gpt2 · 日本": true, "": true, "a\nb": false, "a\tb": false, "\ufeff": false,
		"\xff": false, "a\u202eb": false} {
		if Name(name) != want {
			t.Errorf("Name(%q) is %v", name, !want)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

// A writer that fails says so.
func TestWriterFails(t *testing.T) {
	if n, err := fmt.Fprint(Writer(broken{}), "\x1b"); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
}
