package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// RankTable returns the rank table of one of OpenAI's encodings in OpenAI's format, such as r50k_base. The module
// tiktoken-go/tokenizer contains the tables. They are 12 MB of code, so that planc does not link it: a program that
// does is built and run once, and its output is kept in the user's cache folder. This needs the module, which the go
// command gets as it gets any other. The caller must check the table's hash.
func RankTable(ctx context.Context, encoding string) ([]byte, error) {
	root, err := cacheRoot("", "tokenizers")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(root, encoding+".tiktoken")
	if table, err := os.ReadFile(path); err == nil {
		return table, nil
	}
	unlock, err := lock(root, encoding)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if table, err := os.ReadFile(path); err == nil {
		return table, nil
	}
	table, err := printRanks(ctx, encoding)
	if err != nil {
		return nil, fmt.Errorf("the rank table of %s is printed by a program that is built with the module %s: %w\n"+
			"Without a network, copy %s from another machine", encoding, rankModule, err, path)
	}
	return table, ReplaceBytes(path, table, 0o600)
}

// rankModule is the module with the tables, and the version that ranksModule requires.
const rankModule = "github.com/tiktoken-go/tokenizer v0.10.0"

// The program that prints a rank table. Decoding a token's ID gives its text.
const (
	ranksModule = `module ranks

go 1.26.0

require ` + rankModule + `

require github.com/dlclark/regexp2/v2 v2.5.1 // indirect
`
	ranksSums = `github.com/dlclark/regexp2/v2 v2.5.1 h1:E5Ug7Dh264W1ymdySmiHNcDG7fmsR307APCE5R07a20=
github.com/dlclark/regexp2/v2 v2.5.1/go.mod h1:avUrQvPaLz2DrFNHJF0taWAFFX2C1GMSSoeiqFjcBmU=
github.com/tiktoken-go/tokenizer v0.10.0 h1:xcMbdR1D/rTF2/yEj1GQg3/jl5D9n5aQ546mr32di/w=
github.com/tiktoken-go/tokenizer v0.10.0/go.mod h1:eLA0t6nGvn9mDc7gt90qt7pMat+gE9ViqwQ6l9B+tA4=
`
	ranksProgram = `package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"

	"github.com/tiktoken-go/tokenizer"
)

func main() {
	codec, err := tokenizer.Get(tokenizer.Encoding(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	w := bufio.NewWriter(os.Stdout)
	for id := uint(0); ; id++ {
		text, err := codec.Decode([]uint{id})
		if err != nil {
			break
		}
		fmt.Fprintln(w, base64.StdEncoding.EncodeToString([]byte(text)), id)
	}
	if err := w.Flush(); err != nil {
		os.Exit(1)
	}
}
`
)

// printRanks builds and runs the program that prints a rank table. The user's own settings of the go command apply,
// because they say where modules come from.
func printRanks(ctx context.Context, encoding string) (table []byte, err error) {
	goTool, err := FindGo(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "planc-ranks-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for name, text := range map[string]string{"go.mod": ranksModule, "go.sum": ranksSums, "main.go": ranksProgram} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, goTool.Path, "run", ".", encoding)
	cmd.Dir = dir
	cmd.WaitDelay = 2 * time.Second
	cmd.Env = append(os.Environ(), "PWD="+dir, "GOFLAGS=-mod=readonly", "GOWORK=off", "GO111MODULE=on",
		"GOTOOLCHAIN=local", "CGO_ENABLED=0", "GOOS=", "GOARCH=")
	table, err = cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go run: %s", strings.TrimSpace(err.Error()+complaint(err)))
	}
	return table, nil
}
