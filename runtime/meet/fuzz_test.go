package meet

import (
	"bytes"
	"slices"
	"testing"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
)

// FuzzFrame reads frames of any bytes: what is read was sent, and memory is taken for what has come.
func FuzzFrame(f *testing.F) {
	for _, b := range forged() {
		f.Add(b)
	}
	f.Add(slices.Concat(frame(payload, 3, []byte("abc")), frame(alive, 0, nil), frame(payload, 1<<34, []byte("d"))))
	f.Fuzz(func(t *testing.T, sent []byte) {
		r := bytes.NewReader(sent)
		for r.Len() > 0 {
			at := len(sent) - r.Len()
			k, b, err := readFrame(r, frameLimit)
			if err != nil {
				return
			}
			if cap(b) > 4*len(sent)+firstPiece {
				t.Fatalf("%d bytes are taken for %d that were sent", cap(b), len(sent))
			}
			if second := frame(k, len(b), b); !bytes.Equal(second, sent[at:len(sent)-r.Len()]) {
				t.Fatalf("%q is read as %q", sent[at:], second)
			}
		}
	})
}

// FuzzHello has the lead hear any bytes of a caller: whom it takes is a process of the launch.
func FuzzHello(f *testing.F) {
	for _, b := range forged() {
		f.Add(b)
	}
	ok := member(1, 3)
	ok.Program = proven
	f.Add(helloFrame(ok))
	f.Fuzz(func(t *testing.T, sent []byte) {
		h, err := readHello(bytes.NewReader(sent))
		if err != nil {
			return
		}
		lead := member(0, 3)
		here, callerText := lead.refuses(&h, proven)
		if (here == "") != (callerText == "") {
			t.Fatalf("the lead says %q, and the caller hears %q", here, callerText)
		}
		if len(here) > 2000 {
			t.Fatalf("%d bytes are said of a caller", len(here))
		}
		want := member(h.Process, 3)
		want.Program = proven
		want.Host = h.Host
		if here == "" && (h != want || h.Process < 1 || h.Process > 2) {
			t.Fatalf("%+v is taken", h)
		}
		if h.Program != proven && callerText != otherProgram {
			t.Fatalf("a stranger hears %q", callerText)
		}
	})
}

// FuzzKnown and its like have a process read what the lead sends.
func FuzzKnown(f *testing.F) {
	f.Add(
		[]byte(
			`[{"Process":0,"Processes":2,"Ranks":4,"First":0,"Count":2},{"Process":1,"Processes":2,"Ranks":4,"First":2,"Count":2,"Host":"\u001b"}]`))
	f.Add([]byte(`[{"Count":-1},{}]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, sent []byte) {
		me := member(1, 2)
		all, err := readKnown(sent, &me)
		if err != nil {
			return
		}
		if len(all) != 2 || all[0].ranks() != "ranks 0 to 1" || all[1].ranks() != "ranks 2 to 3" ||
			all[1].Host != quoted(all[1].Host) {
			t.Fatalf("%+v", all)
		}
		_ = readFailure(sent)
	})
}

// FuzzMessages takes messages apart that were joined.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{}, 0)
	f.Add(joinMessages([][]byte{[]byte("a"), nil, []byte("bcd")}), 3)
	f.Add(bytes.Repeat([]byte{0xff}, 16), 1)
	f.Fuzz(func(t *testing.T, joined []byte, n int) {
		all, ok := partMessages(joined, n)
		if ok && (len(all) != n || !bytes.Equal(joinMessages(all), joined)) {
			t.Fatalf("%q is taken apart into %q", joined, all)
		}
	})
}
