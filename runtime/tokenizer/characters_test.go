package tokenizer

import (
	"slices"
	"testing"
)

func TestCharactersAreTokens(t *testing.T) {
	b, err := ParseJSON(Characters([]rune("\n ab\"é你")))
	if err != nil {
		t.Fatal(err)
	}
	const text = "你 é\na\"b"
	got := encode(t, b, text)
	if !slices.Equal(got, []int32{6, 1, 5, 0, 2, 4, 3}) || Decode(b, got) != text || b.Vocab() != 7 {
		t.Errorf("%v, %q, vocabulary %d", got, Decode(b, got), b.Vocab())
	}
	for cut, want := range map[string]int{"ab": 2, "a你": 4, "a你"[:3]: 1, "a你"[:2]: 1, "": 0, "é"[:1]: 0} {
		if got := b.Cut([]byte(cut)); got != want {
			t.Errorf("%q is cut at %d, not %d", cut, got, want)
		}
	}
	points, _ := CodePoints{}.Encode(nil, []byte("é你"), true)
	if !slices.Equal(points, []int32{'é', '你'}) || Decode(CodePoints{}, points) != "é你" {
		t.Error(points)
	}
}
