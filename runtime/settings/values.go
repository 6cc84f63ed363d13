package settings

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
)

// The value of a setting is a Go value, or a string in the command line's syntax: a YAML scalar or flow list.

// number parses 3, 3e-4, "3e-4" and "300B".
func number(v any) (float64, error) {
	if text, ok := v.(string); ok {
		return parseNumber(text)
	}
	switch r := reflect.ValueOf(v); {
	case r.CanFloat():
		return r.Float(), nil
	case r.CanInt():
		return float64(r.Int()), nil
	case r.CanUint():
		return float64(r.Uint()), nil
	}
	return 0, fmt.Errorf("%v is not a number", v)
}

var multiples = map[byte]float64{'K': 1e3, 'M': 1e6, 'B': 1e9, 'T': 1e12}

func parseNumber(text string) (float64, error) {
	text = strings.TrimSpace(text)
	digits, scale := text, 1.0
	if n := len(text); n > 1 && multiples[text[n-1]] != 0 {
		digits, scale = text[:n-1], multiples[text[n-1]]
	}
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil || strings.ContainsAny(digits, "xXpP_") {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	if len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0123456789") == "" {
		return 0, fmt.Errorf("%q begins with a zero", text)
	}
	return x * scale, nil
}

func integer(v any) (int64, error) {
	x, err := number(v)
	if err != nil {
		return 0, err
	}
	if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return 0, fmt.Errorf("%v is not a whole number", v)
	}
	return int64(x), nil
}

func setNumber(to *float64, v any) (err error) {
	*to, err = number(v)
	return err
}

func setInt(to *int, v any) error {
	n, err := integer(v)
	*to = int(n)
	return err
}

func setBool(to *bool, v any) error {
	b, err := strconv.ParseBool(strings.TrimSpace(fmt.Sprint(v)))
	if err != nil {
		return fmt.Errorf("%v is not true or false", v)
	}
	*to = b
	return nil
}

func setString(to *string, v any) error {
	switch v := v.(type) {
	case string:
		*to = unquote(v)
	default:
		return fmt.Errorf("%v is not text", v)
	}
	return nil
}

// unquote removes the quotes of a YAML scalar.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}

// list splits a flow list. A scalar is a list of one. Commas inside braces do not split.
func list(v any) []any {
	text, ok := v.(string)
	if !ok {
		if r := reflect.ValueOf(v); r.Kind() == reflect.Slice || r.Kind() == reflect.Array {
			var out []any
			for i := range r.Len() {
				out = append(out, r.Index(i).Interface())
			}
			return out
		}
		return []any{v}
	}
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "[") || !strings.HasSuffix(text, "]") {
		return []any{text}
	}
	var out []any
	for _, part := range splitFlow(text[1 : len(text)-1]) {
		out = append(out, part)
	}
	return out
}

func splitFlow(s string) (parts []string) {
	depth, begin := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				parts, begin = append(parts, strings.TrimSpace(s[begin:i])), i+1
			}
		}
	}
	if last := strings.TrimSpace(s[begin:]); last != "" {
		parts = append(parts, last)
	}
	return parts
}

// setTemperature refuses 0, which means the default in the settings and would divide by zero.
func setTemperature(s *program.Settings, v any) error {
	x, err := number(v)
	if err == nil && !(x > 0) {
		err = fmt.Errorf("%v is not above 0; for the most likely token at each position use train.eval.top_k=1", x)
	}
	s.Train.Eval.Temperature = x
	return err
}

func setPair(to *[2]float64, v any) error {
	items := list(v)
	if len(items) != 2 {
		return fmt.Errorf("%v is not a list of two numbers", v)
	}
	for i, item := range items {
		if err := setNumber(&to[i], item); err != nil {
			return err
		}
	}
	return nil
}

// setFiles reads paths, File values and {path: P, weight: W}.
func setFiles(to *[]program.File, v any) error {
	*to = nil
	for _, item := range list(v) {
		f, err := file(item)
		if err != nil {
			return err
		}
		*to = append(*to, f)
	}
	return nil
}

func file(v any) (program.File, error) {
	if f, ok := v.(program.File); ok {
		return f, nil
	}
	text, ok := v.(string)
	if !ok {
		return program.File{}, fmt.Errorf("%v is not a path", v)
	}
	if !strings.HasPrefix(text, "{") {
		return program.File{Path: unquote(text), Weight: 1}, nil
	}
	f := program.File{Weight: 1}
	for _, pair := range splitFlow(strings.Trim(text, "{}")) {
		key, value, _ := strings.Cut(pair, ":")
		switch strings.TrimSpace(key) {
		case "path":
			f.Path = unquote(value)
		case "weight":
			if err := setNumber(&f.Weight, value); err != nil {
				return f, err
			}
		default:
			return f, fmt.Errorf("%q is not path or weight", strings.TrimSpace(key))
		}
	}
	return f, nil
}

// setValid reads files, a fraction, or none.
func setValid(s *program.Settings, v any) error {
	if text, ok := v.(string); ok && strings.TrimSpace(text) == "none" {
		v = 0
	}
	if x, err := number(v); err == nil {
		s.Data.Valid, s.Data.ValidFraction = nil, x
		return nil
	}
	s.Data.ValidFraction = 0
	return setFiles(&s.Data.Valid, v)
}

func setSteps(s *program.Settings, v any) error {
	s.Train.Epochs, s.Train.Tokens = 0, 0
	return setInt(&s.Train.Steps, v)
}

func setEpochs(s *program.Settings, v any) error {
	s.Train.Steps, s.Train.Tokens = 0, 0
	return setNumber(&s.Train.Epochs, v)
}

func setTokens(s *program.Settings, v any) (err error) {
	s.Train.Steps, s.Train.Epochs = 0, 0
	s.Train.Tokens, err = integer(v)
	return err
}

func setSeed(s *program.Settings, v any) error {
	if text, ok := v.(string); ok {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return fmt.Errorf("%q must be a whole number of at least 0", text)
		}
		s.Train.Seed = n
		return nil
	}
	if n, ok := v.(uint64); ok {
		s.Train.Seed = n
		return nil
	}
	n, err := integer(v)
	if err == nil && n < 0 {
		err = fmt.Errorf("%v must be a whole number of at least 0", v)
	}
	s.Train.Seed = uint64(n)
	return err
}
