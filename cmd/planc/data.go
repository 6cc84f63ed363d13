package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/datatools"
	"github.com/planc-dev/planc/cmd/planc/internal/process"
	"github.com/planc-dev/planc/cmd/planc/internal/tokenfiles"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/runtime/data"
)

func dataCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "data tokenize|inspect|split FILE...",
		Short: "make files of tokens from text, look into them, hold a part out",
		Long: `data prepares training data. "planc data tokenize" converts text to a file of tokens, "planc data inspect"
prints what a file of tokens has, and "planc data split" cuts it into a part to train on and a part to validate with.`,
		Example: "planc data tokenize --tokenizer gpt2 corpus.jsonl -o train.bin\n" +
			"planc data inspect train.bin --tokenizer gpt2\nplanc data split corpus.bin --valid 0.01",
	}
	c.AddCommand(tokenizeCommand(a), inspectCommand(a), splitCommand(a))
	c.Args = func(_ *cobra.Command, args []string) error { return unknownPart(c, args) }
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return c
}

// unknownPart reports a word that is not a command of c.
func unknownPart(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, s := range c.Commands() {
		names = append(names, s.Name())
	}
	return inputErrorf(UnknownCommand, ir.Nearest(args[0], names), "unknown command %s %s; the commands are %s",
		c.Name(), args[0], strings.Join(names, ", "))
}

// filesArg checks that a command has files, at most a number of them if that is positive.
func filesArg(limit int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return inputErrorf(BadFlag, "", "%s needs a FILE", c.CommandPath())
		case limit > 0 && len(args) > limit:
			return inputErrorf(TooManyArguments, "", "%s takes one FILE, but %d are given: %s", c.CommandPath(),
				len(args), strings.Join(args, ", "))
		}
		return nil
	}
}

// dataError returns an input error for what is wrong with a file, with its position.
func dataError(err error) error {
	var wrong *tokenfiles.InputError
	if errors.As(err, &wrong) {
		return ir.Diags{{Pos: ir.Pos{File: wrong.File, Line: wrong.Line, Column: wrong.Column}, Code: codeBadData,
			Msg: wrong.Msg}}
	}
	var flag *datatools.FlagError
	if errors.As(err, &flag) {
		return inputErrorf(BadFlag, flag.Fix, "%s", flag.Msg)
	}
	var bad *data.InputError
	if errors.As(err, &bad) {
		return ir.Diags{{Code: codeBadData, Msg: strings.TrimPrefix(bad.Error(), "data: ")}}
	}
	return err
}

// screened is a result that can be printed as a document or as a screen.
type screened interface{ Screen() string }

// runData runs a command of planc data and prints its result.
func runData[R screened](a *app, run func(ctx context.Context) (R, error)) error {
	return dataError(printResult(a, run))
}

// printResult runs a function until it ends or planc is stopped, and prints its result.
func printResult[R screened](a *app, run func(ctx context.Context) (R, error)) error {
	ctx, release := process.UntilSignal()
	defer release()
	result, err := run(ctx)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.PrintJSON(result)
	}
	return a.Print(result.Screen())
}

func tokenizeCommand(a *app) *cobra.Command {
	var t datatools.Tokenize
	c := &cobra.Command{
		Use:   "tokenize FILE... -o OUT",
		Short: "convert text, JSON lines and Parquet tables to a file of tokens",
		Long: `tokenize converts text to a file of tokens that training reads. A file named .jsonl, .ndjson or .json has
a JSON object with a text on each line, which is a document. A file named .parquet is a table with a document in each row
of the column --key. Any other file is text, and is one document. Files that are also named .gz are unpacked. A token
after each document marks its end.

Tokenizers: bytes; char, the characters that the text has; gpt2, cl100k and o200k of OpenAI; or the path of a Hugging
Face tokenizer.json with a BPE or WordPiece model. char writes its vocabulary to a file named like OUT, with
.tokenizer.json instead of .bin. With bytes and char, which have no token for the end of text, a line end follows each
document of JSON lines and tables.

The file appears when it is complete. The format nanogpt has 16-bit tokens without a header, and is the default if the
vocabulary is at most 65,536. llmc has a header and 16 or 32 bits, and is the default otherwise. megatron is a .bin file
with an .idx file.`,
		Example: "planc data tokenize --tokenizer gpt2 corpus.jsonl -o train.bin\n" +
			"planc data tokenize --tokenizer char shakespeare.txt -o shakespeare.bin\n" +
			"planc data tokenize --tokenizer llama/tokenizer.json --format megatron part-*.jsonl.gz -o train.bin",
		Args: filesArg(0),
		RunE: func(_ *cobra.Command, args []string) error {
			return runData(a, func(ctx context.Context) (*datatools.Corpus, error) {
				return t.Run(ctx, a.Console, args)
			})
		},
		ValidArgsFunction: anyFile,
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&t.Out, "out", "o", "", "write the tokens to `FILE`, named .bin")
	f.StringVar(&t.Tokenizer, "tokenizer", "", "bytes, char, gpt2, cl100k, o200k, or the `path` of a tokenizer.json")
	f.StringVar(&t.Format, "format", "", "nanogpt, llmc or megatron")
	f.StringVar(&t.Key, "key", "text", "`key` of the text in JSON lines, or column of a table")
	f.StringVar(&t.EndOfText, "end-of-text", "", "`token` after each document: its name or number, or none")
	f.StringVar(&t.ShardTokens, "shard-tokens", "", "begin a new file after that `number` of tokens, such as 100M")
	f.BoolVar(&t.ReplaceInvalid, "replace-invalid", false, "write U+FFFD for bytes that are not UTF-8")
	a.jsonFlag(c)
	return c
}

func inspectCommand(a *app) *cobra.Command {
	var i datatools.Inspect
	c := &cobra.Command{
		Use:   "inspect FILE...",
		Short: "print the format, number and range of a file's tokens",
		Long: `inspect reads files as training does. It prints each file's format, how many tokens it has, and the largest
one. With --tokenizer it prints the first tokens as text. With --model or --job it says whether the tokens fit the
model's vocabulary, and fails with exit 2 if they do not.`,
		Example: "planc data inspect train.bin --tokenizer gpt2 --job planc.yaml",
		Args:    filesArg(0),
		RunE: func(_ *cobra.Command, args []string) error {
			misfit := ""
			err := runData(a, func(ctx context.Context) (*datatools.Findings, error) {
				found, err := i.Run(ctx, a.Console, args)
				if err == nil {
					misfit = found.Misfit()
				}
				return found, err
			})
			if err != nil || misfit == "" {
				return err
			}
			return &reportedError{inputErrorf(codeBadData, "", "%s", misfit)}
		},
		ValidArgsFunction: anyFile,
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&i.Tokenizer, "tokenizer", "", "bytes, gpt2, cl100k, o200k, or the `path` of a tokenizer.json")
	f.StringVar(&i.Model, "model", "", "model whose vocabulary the tokens must fit: `name` or path of a config.json")
	f.StringVar(&i.Job, "job", "", "`job` with that model")
	a.jsonFlag(c)
	return c
}

func splitCommand(a *app) *cobra.Command {
	var s datatools.Split
	c := &cobra.Command{
		Use:   "split FILE --valid FRACTION",
		Short: "cut a file of tokens: a part to train on, a part to validate with",
		Long: `split writes the first part of a file of tokens to NAME.train.bin and the rest, which is the fraction that
--valid gives, to NAME.valid.bin, in the same format. With --end-of-text it cuts after the next token that ends a
document. It cuts a Megatron data set between sequences.

A job can hold a part out without this: data.valid takes a fraction.`,
		Example: "planc data split corpus.bin --valid 0.01 --end-of-text 50256",
		Args:    filesArg(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return runData(a, func(ctx context.Context) (*datatools.Parts, error) {
				return s.Run(ctx, a.Console, args[0])
			})
		},
		ValidArgsFunction: anyFile,
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&s.Valid, "valid", "", "`fraction` of the tokens to hold out, such as 0.01")
	f.StringVar(&s.EndOfText, "end-of-text", "", "`number` of the token that ends a document")
	f.StringVar(&s.TrainFile, "train-file", "", "write the first part to `FILE`")
	f.StringVar(&s.ValidFile, "valid-file", "", "write the held-out part to `FILE`")
	a.jsonFlag(c)
	return c
}

// addTokenizer adds the job's tokenizer to generated files, unless tokens are bytes.
func addTokenizer(ui *console.Console, files map[string][]byte, j *loaded) error {
	src, err := tokenizerSource(ui, j)
	if src != nil {
		files["tokenizer.go"] = append([]byte(tokenizerHeader), src...)
	}
	return err
}

// tokenizerHeader begins the file of [tokenizerSource] in a program of its own.
const tokenizerHeader = `// Code generated by planc. DO NOT EDIT.

package main

import rt "github.com/planc-dev/planc/runtime"
`

// tokenizerSource returns the declarations of generated code that embed the job's tokenizer; none if tokens are bytes.
func tokenizerSource(ui *console.Console, j *loaded) ([]byte, error) {
	name := j.Data.Tokenizer
	if data.IsBytes(name) {
		return nil, nil
	}
	ctx, release := process.UntilSignal()
	defer release()
	src, vocab, err := datatools.Embedded(ctx, ui, name, j.Data.Root, j.Dir)
	at := j.Pos("data.tokenizer")
	var wrong *tokenfiles.InputError
	var bad *data.InputError
	switch {
	case errors.As(err, &bad) && name == "char":
		return nil, ir.Diags{{Pos: at, Code: spec.NoFile, Msg: "data.tokenizer char: the characters are those of a " +
			"text; planc data tokenize --tokenizer char TEXT.txt -o TEXT.bin writes them to TEXT.tokenizer.json, " +
			"which data.tokenizer then names"}}
	case errors.As(err, &wrong):
		return nil, ir.Diags{{Pos: at, Code: codeBadData, Msg: wrong.Error()}}
	case errors.As(err, &bad):
		return nil, ir.Diags{{Pos: at, Code: spec.NoFile, Fix: ir.Nearest(name, datatools.TokenizerNames()),
			Msg: "data.tokenizer must be bytes, gpt2, cl100k, o200k, or the path of a tokenizer.json: " +
				strings.TrimPrefix(bad.Error(), "data: ")}}
	case err != nil:
		return nil, err
	case vocab > j.Config.Vocab:
		return nil, ir.Diags{{Pos: at, Code: spec.Conflict, Msg: fmt.Sprintf("data.tokenizer %s has tokens 0 to %d, "+
			"but %s has a "+
			"vocabulary of %d: use the tokenizer that the model is for, or a larger vocab_size", name, vocab-1,
			j.Config.Name, j.Config.Vocab)}}
	}
	return src, nil
}
