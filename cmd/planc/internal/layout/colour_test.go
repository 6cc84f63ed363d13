package layout

import (
	"testing"
)

// Verdicts are coloured, and nothing else of a screen is.
func TestColours(t *testing.T) {
	for text, want := range map[string]string{
		"memory   71.0 GiB of 71.2        fits (margin assumed) fullest: all\n": "memory   71.0 GiB of " +
			"71.2        \x1b[32mfits (margin assumed)\x1b[0m fullest: all\n",
		"memory   9.6 MiB of 4.9 GiB      fits (p > 0.99)  x\n": "memory   9.6 MiB of 4.9 " +
			"GiB      \x1b[32mfits (p > 0.99)\x1b[0m  x\n",
		"memory   71.0 GiB of 71.2        fits (p 0.96)\n         x\ntight    p\n": "memory   71.0 GiB of " +
			"71.2        \x1b[33mfits (p 0.96)\x1b[0m\n         x\n\x1b[33mtight\x1b[0m    p\n",
		"memory   1.0 GiB of 71.2  fits (p > 0.99)\ntime     x\ntight    p\n": "memory   1.0 GiB of 71.2  " +
			"\x1b[32mfits (p > 0.99)\x1b[0m\ntime     x\n\x1b[33mtight\x1b[0m    p\n",
		"memory   76.6 GiB of 71.2        does not fit: 5.4 GiB over\n": "memory   76.6 GiB of " +
			"71.2        \x1b[31mdoes not fit: 5.4 GiB over\x1b[0m\n",
		"  zero 0   no fit   2.6 GiB\n  tp 2   no fit\n": "  zero 0   \x1b[31mno " +
			"fit\x1b[0m   2.6 GiB\n  tp 2   \x1b[31mno fit\x1b[0m\n",
		"planc: no plan fits: llama3-70b [NoPlan]\n": "planc: \x1b[31mno plan " +
			"fits\x1b[0m: llama3-70b\x1b[31m [NoPlan]\x1b[0m\n",
		"note: a\nC compiler  ok       /usr/bin/cc\ngpu         missing  none\n": "\x1b[33mnote\x1b[0m: a\nC " +
			"compiler  \x1b[32mok\x1b[0m       /usr/bin/cc\ngpu         \x1b[33mmissing\x1b[0m  none\n",
		"PLAN     dp 8 · zero 2\nexact    10 plans: 3 do not fit\n": "PLAN     dp 8 · zero " +
			"2\nexact    10 plans: 3 do not fit\n",
	} {
		if got := Colour(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
