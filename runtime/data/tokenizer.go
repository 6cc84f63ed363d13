package data

import (
	"compress/flate"
	"encoding/base64"
	"io"
	"strings"
	"sync"

	"github.com/planc-dev/planc/runtime/tokenizer"
)

// job is the tokenizer that generated code has embedded.
var job struct {
	name string
	load func() (tokenizer.Tokenizer, error)
}

// Embed sets the tokenizer that data.tokenizer names. packed is the rank table of that encoding or, for other names, a
// tokenizer.json, as [Pack] returns it. Programs that do not call it do not link the code for such tokenizers.
func Embed(name, packed string) {
	job.name = name
	job.load = sync.OnceValues(func() (tokenizer.Tokenizer, error) {
		text, err := io.ReadAll(flate.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed))))
		if err != nil {
			return nil, err
		}
		if e, ok := tokenizer.FindEncoding(name); ok {
			return tokenizer.ParseRanks(e, text)
		}
		return tokenizer.ParseJSON(text)
	})
}

// Pack compresses a text for [Embed].
func Pack(text []byte) string {
	var b strings.Builder
	encoded := base64.NewEncoder(base64.StdEncoding, &b)
	z, err := flate.NewWriter(encoded, flate.BestCompression)
	if err == nil {
		_, err = z.Write(text)
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = encoded.Close()
	}
	if err != nil {
		panic(err) // a strings.Builder takes everything
	}
	return b.String()
}

// byteVocab is the number of tokens if tokens are bytes.
const byteVocab = 256

// IsBytes reports whether data.tokenizer has that value for tokens that are bytes.
func IsBytes(name string) bool { return name == "" || name == "bytes" }

// NewTokenizer returns the tokenizer of data.tokenizer.
func NewTokenizer(name string) (tokenizer.Tokenizer, error) {
	switch {
	case IsBytes(name):
		return tokenizer.Bytes{}, nil
	case job.load != nil && job.name == name:
		return job.load()
	}
	return nil, inputf("this program was built without data.tokenizer %s; build it with planc compile", name)
}

// textNeedsTokens returns the error for a text file if tokens are not bytes.
func textNeedsTokens(path, name string) error {
	return inputf("%s is text, which must be converted to tokens of %s before training: planc data tokenize "+
		"--tokenizer "+
		"%[2]s %[1]s -o data.bin", path, name)
}
