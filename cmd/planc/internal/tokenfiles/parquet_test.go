package tokenfiles

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/tokenizer"
)

// documents returns the texts of the documents that a file has.
func documents(path, key string) (texts []string, err error) {
	var l list
	bytesEach := &Encoding{Tokenizer: tokenizer.Bytes{}, EndOfText: -1, Separator: -1, Key: key}
	r := &Reader{Files: []string{path}, Cut: tokenizer.Bytes{}.Cut, Key: key}
	err = bytesEach.Encode(context.Background(), r, &l)
	from := 0
	for _, end := range l.ends {
		var text []byte
		for _, c := range l.tokens[from:end] {
			text = append(text, byte(c))
		}
		texts, from = append(texts, string(text)), end
	}
	return texts, err
}

// The tables are those that pyarrow writes: with several compressions, encodings, versions of pages and groups of rows.
func TestTextsOfTables(t *testing.T) {
	text, err := os.ReadFile("testdata/tables.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []*string
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, r := range rows {
		if r != nil && *r != "" {
			want = append(want, *r)
		}
	}
	tables, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(tables) != 7 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	for _, path := range tables {
		got, err := documents(path, "text")
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v; %d texts, want %d", path, err, len(got), len(want))
		}
	}
}

func TestErrorsOfTables(t *testing.T) {
	whole, err := os.ReadFile("testdata/zstd.parquet")
	if err != nil {
		t.Fatal(err)
	}
	truncated := write(t, "cut.parquet", whole[:len(whole)/2])
	for _, c := range []struct{ path, key, want string }{
		{truncated, "text", "cut.parquet: is not a complete Parquet table: "},
		{write(t, "no.parquet", []byte("text")), "text", "no.parquet: is not a complete Parquet table: "},
		{"testdata/zstd.parquet", "body", `has no column "body"; its columns are id, text: choose one with --key`},
		{"testdata/zstd.parquet", "id", `the column "id" is of type INT64; it must be text`},
		{"testdata/none.parquet", "text", "there is no such file"},
	} {
		_, err := documents(c.path, c.key)
		var bad *InputError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.path, err, c.want)
		}
	}
}

// A table that was cut off anywhere is an input error: its description is at its end.
func TestTruncatedTables(t *testing.T) {
	for _, name := range []string{"plain", "zstd", "snappy", "delta", "gzip", "lz4", "small"} {
		whole, err := os.ReadFile("testdata/" + name + ".parquet")
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(whole); n += 1 + n/40 {
			_, err := documents(write(t, "cut.parquet", whole[:n]), "text")
			var bad *InputError
			if !errors.As(err, &bad) {
				t.Fatalf("%s, %d of %d bytes: %v", name, n, len(whole), err)
			}
		}
	}
}

// A text that is not UTF-8 is named with its row.
func TestRowsAreNamed(t *testing.T) {
	b := gpt2(t)
	e := &Encoding{Tokenizer: b, EndOfText: -1, Separator: -1}
	out := e.chunk(&Chunk{File: "a.parquet", Row: 7, Text: []byte("caf\xe9"), IsStart: true, IsEnd: true})
	want := "a.parquet: row 7: the byte 0xE9 is not UTF-8; convert the file, or use --replace-invalid, which writes " +
		"U+FFFD instead"
	if out.err == nil || out.err.Error() != want {
		t.Errorf("%v, want %s", out.err, want)
	}
}
