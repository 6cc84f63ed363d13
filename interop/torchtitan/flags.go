package torchtitan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// torchtitan 0.2 reads its command line with tyro: --training.seq_len 8192 or --training.seq_len=8192 replaces the key
// seq_len of [training]. Dashes and underscores are the same. The last of several options holds.

// flag is an option of torchtitan's command line.
type flag struct {
	key     string // of the TOML file that it replaces
	spelled string // without its value
	words   []shell.Word
	pos     ir.Pos
	shown   string     // the value as the script writes it
	value   *tree.Node // nil if it is not known
	isKey   bool       // torchtitan has the key
}

// optionPrefix begins the name of an option.
const optionPrefix = "--"

// Choices are the values of options that have a fixed set of them. In a TOML file torchtitan does not check them.
var Choices = map[string][]string{
	"optimizer.implementation":        {"for-loop", "foreach", "fused"},
	"lr_scheduler.decay_type":         {"linear", "sqrt", "cosine"},
	dtypeKey:                          {"bfloat16", "float32"},
	mixedKey:                          {"bfloat16", "float32"},
	"training.mixed_precision_reduce": {"float32"},
	reshardKey:                        {"default", "always", "never"},
	rotateKey:                         {"allgather", "alltoall"},
	"parallelism.expert_parallel_comm_backend":         {"standard", "deepep"},
	"checkpoint.export_dtype":                          {"float16", "bfloat16", "float32"},
	"checkpoint.async_mode":                            {"disabled", "async", "async_with_pinned_mem"},
	acKey:                                              {"selective", "full", "memory_budget", "none"},
	"quantize.linear.float8.recipe_name":               {"tensorwise", "rowwise", "rowwise_with_gw_hp"},
	"quantize.linear.mx.mxfp8_dim1_cast_kernel_choice": {"triton", "cuda", "torch"},
	"quantize.grouped_mm.mx.recipe_name":               {"mxfp8"},
	"comm.mode":                                        {"default", "fake_backend", "local_tensor"},
}

// none is the value of an option that stands for no value, if the key can be without one.
const none = "None"

// canBeNone reports whether a key can be without a value.
func canBeNone(row keytable.Row) bool {
	return row.Default == "null" || row.Key == "parallelism.pipeline_parallel_schedule_csv" ||
		row.Key == "parallelism.context_parallel_load_balancer"
}

// rowOf returns the row of an option's name. isNo says that the option sets a boolean key to false.
func rowOf(name string) (row keytable.Row, isNo, ok bool) {
	key := strings.ReplaceAll(strings.TrimPrefix(name, optionPrefix), "-", "_")
	row, ok = Keys.Find(key)
	if ok && row.Key == key {
		return row, false, true
	}
	section, last := key[:strings.LastIndexByte(key, '.')+1], key[strings.LastIndexByte(key, '.')+1:]
	positive, isNo := strings.CutPrefix(last, "no_")
	row, ok = Keys.Find(section + positive)
	if isNo && ok && row.Key == section+positive && row.Type == "bool" {
		return row, true, true
	}
	return keytable.Row{}, false, false
}

// readFlags reads the options of the command.
func (s *script) readFlags() {
	for i := 0; i < len(s.words); {
		name, inline, hasInline := strings.Cut(s.words[i].Text(), "=")
		if !strings.HasPrefix(name, optionPrefix) || name == optionPrefix {
			s.stray(i)
			i++
			continue
		}
		f := &flag{spelled: name, pos: s.shell.Pos(&s.words[i]), words: s.words[i : i+1]}
		row, isNo, ok := rowOf(name)
		f.key, f.isKey = row.Key, ok
		if !ok {
			f.key = strings.ReplaceAll(strings.TrimPrefix(name, optionPrefix), "-", "_")
		}
		values := []string{inline}
		if !hasInline {
			f.words = s.words[i : i+1+s.countValues(row, ok, i+1)]
			values = nil
		}
		for j := range f.words[1:] {
			values = append(values, f.words[1+j].Text())
		}
		i += len(f.words)
		if row.Key == modulesKey && hasInline { // further values may follow the first
			n := s.countValues(row, ok, i)
			f.words = s.words[i-1 : i+n]
			for j := range n {
				values = append(values, s.words[i+j].Text())
			}
			i += n
		}
		s.add(f, row, values, isNo, hasInline)
	}
}

// countValues returns how many of the words from an index are the values of an option.
func (s *script) countValues(row keytable.Row, isKey bool, at int) int {
	limit := 1
	switch {
	case isKey && row.Type == "bool":
		limit = 0
	case row.Key == modulesKey:
		limit = len(s.words)
	}
	n := 0
	for n < limit && at+n < len(s.words) && isValue(s.words[at+n].Text()) && !isArguments(&s.words[at+n]) {
		n++
	}
	return n
}

// isValue reports whether a word is the value of an option, and not the next option.
func isValue(text string) bool {
	rest, isDash := strings.CutPrefix(text, "-")
	if !isDash || rest == "" || rest[0] >= '0' && rest[0] <= '9' || rest[0] == '.' {
		return true
	}
	return slices.Contains([]string{"inf", "nan", "infinity"}, strings.ToLower(rest))
}

// isArguments reports whether a word has the script's arguments ("$@"), which are not given.
func isArguments(w *shell.Word) bool {
	why := w.Unknown()
	return why != nil && why.Name == "@"
}

// stray accounts for a word that is no option and no value.
func (s *script) stray(at int) {
	w := &s.words[at]
	key := interop.Key{Pos: s.shell.Pos(w), Name: s.shell.Shown(w), Use: interop.Unsupported}
	why := w.Unknown()
	switch {
	case isArguments(w):
		key.Use, key.Note = interop.NoEffect, "no arguments of the script are given: --define '@=...' gives them"
	case why != nil:
		_, key.Note = s.shell.Explain(why)
	case w.Text() == optionPrefix:
		key.Use = interop.NoEffect
	default:
		text := w.Text()
		msg := fmt.Sprintf("torchtitan refuses %s, which is no option: options start with two dashes", text)
		if isValue(text) {
			msg = fmt.Sprintf("torchtitan refuses %q, which belongs to no option", text)
		}
		if n := len(s.flags); n > 0 && isValue(text) && isBool(text) && s.isBoolean(n-1) && at > 0 {
			msg = s.booleanText(s.flags[n-1])
		}
		s.diags.Addf(key.Pos, strict.UnknownKey, "%s", msg)
	}
	s.keys = append(s.keys, key)
}

// isBool reports whether a word is true or false.
func isBool(text string) bool {
	return strings.EqualFold(text, "true") || strings.EqualFold(text, "false")
}

// isBoolean reports whether an option has a key that is true or false.
func (s *script) isBoolean(i int) bool {
	row, _ := Keys.Find(s.flags[i].key)
	return s.flags[i].isKey && row.Type == "bool"
}

// booleanText is the error of an option that has a value and takes none.
func (s *script) booleanText(f *flag) string {
	i := strings.LastIndexByte(f.key, '.') + 1
	return fmt.Sprintf("torchtitan reads %s without a value: write --%s for true, and --%sno_%s for false", f.spelled,
		f.key, f.key[:i], f.key[i:])
}

// add records an option with its values, or what is wrong with them.
func (s *script) add(f *flag, row keytable.Row, values []string, isNo, hasInline bool) {
	s.flags = append(s.flags, f)
	f.shown = s.shownValue(f)
	for i := range f.words {
		why := f.words[i].Unknown()
		if why == nil {
			continue
		}
		if row.Use != interop.NoEffect && f.isKey {
			pos, msg := s.shell.Explain(why)
			s.diags.Addf(pos, Undefined, "%s: %s", f.spelled, msg)
		}
		return
	}
	switch {
	case !f.isKey:
		f.value = &tree.Node{Kind: strict.String, Text: strings.Join(values, " "), Pos: f.pos}
	case row.Type == "bool" && hasInline:
		s.diags.Addf(f.pos, strict.WrongType, "%s", s.booleanText(f))
	case row.Type == "bool":
		f.value = &tree.Node{Kind: strict.Bool, Text: strconv.FormatBool(!isNo), Pos: f.pos}
		f.shown = f.value.Text
	case len(values) == 0 && row.Key != modulesKey:
		s.diags.Addf(f.pos, strict.WrongType, "%s has no value: add it after the option", f.spelled)
	default:
		f.value = s.valueOf(f, row, values)
	}
}

// shownValue returns the value of an option as the script writes it.
func (s *script) shownValue(f *flag) string {
	var out []string
	if _, inline, ok := strings.Cut(s.shell.Shown(&f.words[0]), "="); ok {
		out = append(out, inline)
	}
	for i := range f.words[1:] {
		out = append(out, s.shell.Shown(&f.words[1+i]))
	}
	return strings.Join(out, " ")
}

// valueOf returns the value of an option as a value of TOML; nil if torchtitan refuses it.
func (s *script) valueOf(f *flag, row keytable.Row, values []string) *tree.Node {
	pos := f.pos
	if len(f.words) > 1 {
		pos = s.shell.Pos(&f.words[1])
	}
	text := strings.Join(values, " ")
	n := &tree.Node{Kind: strict.String, Text: text, Pos: pos}
	wrong := func(code ir.Code, what string) *tree.Node {
		s.diags.Addf(pos, code, "%s is %q; it must be %s", f.spelled, text, what)
		return nil
	}
	if text == none && len(values) == 1 && canBeNone(row) {
		return &tree.Node{Kind: strict.Null, Pos: pos}
	}
	switch words := Choices[row.Key]; {
	case words != nil && !slices.Contains(words, text):
		s.diags = append(s.diags, ir.Diag{Pos: pos, Code: strict.UnknownValue, Fix: ir.Nearest(text, words),
			Msg: fmt.Sprintf("%s is %q; use one of %s", f.spelled, text, strings.Join(words, ", "))})
		return nil
	case row.Key == modulesKey:
		n.Kind, n.Text = strict.List, ""
		for _, value := range values {
			n.Items = append(n.Items, listOf(value, pos))
		}
	case row.Type == "list" || row.Type == "any":
		return listOf(text, pos)
	case row.Type == "int":
		number, ok := pythonInt(text)
		if !ok {
			return wrong(strict.WrongType, "an integer")
		}
		n.Kind, n.Text = strict.Int, number
	case row.Type == "float":
		number := strings.TrimSpace(text)
		_, err := strconv.ParseFloat(withoutUnderscores(number), 64)
		if err != nil && !isRange(err) || strings.ContainsAny(number, "xXpP") {
			return wrong(strict.WrongType, "a number")
		}
		n.Kind, n.Text = strict.Float, withoutUnderscores(number)
	}
	return n
}

// isRange reports whether a number is only too large.
func isRange(err error) bool {
	numError, ok := err.(*strconv.NumError)
	return ok && numError.Err == strconv.ErrRange
}

// listOf returns the list that torchtitan reads from a text with commas.
func listOf(text string, pos ir.Pos) *tree.Node {
	n := &tree.Node{Kind: strict.List, Pos: pos}
	for word := range strings.SplitSeq(text, ",") {
		n.Items = append(n.Items, &tree.Node{Kind: strict.String, Text: word, Pos: pos})
	}
	return n
}

// pythonInt returns the digits of a number that Python's int reads.
func pythonInt(text string) (digits string, ok bool) {
	text = withoutUnderscores(strings.TrimSpace(text))
	digits = strings.TrimPrefix(text, "+")
	unsigned := strings.TrimPrefix(digits, "-")
	if digits != text {
		unsigned = digits
	}
	if unsigned == "" || strings.Trim(unsigned, "0123456789") != "" {
		return "", false
	}
	unsigned = strings.TrimLeft(unsigned, "0")
	if unsigned == "" {
		return "0", true
	}
	if strings.HasPrefix(digits, "-") {
		unsigned = "-" + unsigned
	}
	return unsigned, true
}

// withoutUnderscores removes the underscores between two digits, which Python ignores. Others stay.
func withoutUnderscores(text string) string {
	isDigit := func(i int) bool { return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9' }
	var b strings.Builder
	for i := range len(text) {
		if text[i] != '_' || !isDigit(i-1) || !isDigit(i+1) {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// nearestOption returns the option that a misspelt one probably means; "" if there is none.
func nearestOption(key string) string {
	i := strings.LastIndexByte(key, '.')
	near := inSection(key)
	if i >= 0 && isTable(key[:i]) {
		near = Keys.Nearest(key)
		if near != "" {
			return optionPrefix + key[:i+1] + near
		}
		return ""
	}
	var all []string
	for _, row := range Keys.Rows {
		all = append(all, row.Key)
		if near == "" && strings.HasSuffix(row.Key, "."+key[i+1:]) {
			near = row.Key
		}
	}
	if best := ir.Nearest(key, all); best != "" {
		near = best
	}
	if near == "" {
		return ""
	}
	return optionPrefix + near
}

// commandWords returns a value of a TOML file as the words of torchtitan's command line.
func commandWords(text string) []string {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return []string{text}
	}
	switch value := value.(type) {
	case string:
		return []string{value}
	case nil:
		return []string{none}
	case []any:
		return listWords(value)
	}
	return []string{text}
}

// listWords returns a list as words: one with commas, or one for each list in it.
func listWords(list []any) (words []string) {
	var plain []string
	for _, item := range list {
		if inner, ok := item.([]any); ok {
			words = append(words, strings.Join(listWords(inner), ","))
			continue
		}
		plain = append(plain, fmt.Sprint(item))
	}
	if words != nil {
		return words
	}
	return []string{strings.Join(plain, ",")}
}
