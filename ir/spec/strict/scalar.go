package strict

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/planc-dev/planc/ir"
)

var (
	leadingZero = regexp.MustCompile(`^[-+]?0[0-9_]`)
	countForm   = regexp.MustCompile(`^([-+]?[0-9][0-9_]*(?:\.[0-9]+)?)([KMBT])$`)
	huge        = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(?:[KMBT]|[eE]\+?[0-9]+)?$`)
	suffixes    = map[string]int64{"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
)

// Count returns the value of a whole number with a suffix, such as 300B or 1.5K.
func Count(text string) (int64, bool) {
	m := countForm.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(strings.ReplaceAll(m[1], "_", ""))
	if !ok {
		return 0, false
	}
	r.Mul(r, new(big.Rat).SetInt64(suffixes[m[2]]))
	return r.Num().Int64(), r.IsInt() && r.Num().IsInt64()
}

// integer reads an integer, such as 300, 300B, 0x10 or 1e6.
func (c *Context) integer(n *Node, path string) (int64, bool) {
	if c.zeroLed(n, path) {
		return 0, false
	}
	if v, ok := Count(n.Text); ok && n.Kind == String {
		return v, true
	}
	if n.Kind == Int {
		if v, err := strconv.ParseInt(n.Text, 0, 64); err == nil {
			return v, true
		}
	}
	if f, err := strconv.ParseFloat(n.Text, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		if n.Kind == Float && strings.ContainsAny(n.Text, "eE") && !strings.Contains(n.Text, ".") {
			return int64(f), true
		}
		if n.Kind != Map && n.Kind != List {
			c.fix(n.Pos, WrongType, strconv.FormatInt(int64(f), 10), "%s is %s; it must be an integer", path,
				n.describe())
			return 0, false
		}
	}
	if fix := withSuffix(n, path); fix != "" {
		alternative := ""
		if thousands := strings.ToUpper(n.Text); fix != thousands {
			alternative = fmt.Sprintf(", or %s for %s", thousands, strings.Replace(thousands, "K", "000", 1))
		}
		c.fix(n.Pos, WrongType, fix, "%s is %s; it must be an integer%s", path, n.describe(), alternative)
		return 0, false
	}
	if n.Kind == Int || (n.Kind == Float || n.Kind == String) && huge.MatchString(n.Text) {
		c.Addf(n.Pos, OutOfRange, "%s is %s; it must be at most %d", path, clip(n.Text), int64(math.MaxInt64))
		return 0, false
	}
	c.Addf(n.Pos, WrongType, "%s is %s; it must be an integer", path, n.describe())
	return 0, false
}

// withSuffix returns the corrected text of a number with a lower-case suffix, "" if the node is not one. 300k becomes
// 300K. A length of 8k becomes 8192, because lengths are usually counted in powers of two.
func withSuffix(n *Node, path string) string {
	m := countForm.FindStringSubmatch(strings.ToUpper(n.Text))
	if m == nil || n.Kind != String || strings.ToUpper(n.Text) == n.Text {
		return ""
	}
	if v, err := strconv.ParseInt(m[1], 10, 32); err == nil && m[2] == "K" && strings.HasSuffix(path, "_len") {
		return strconv.FormatInt(v*1024, 10)
	}
	return m[0]
}

// number reads a float. An integer is accepted too.
func (c *Context) number(n *Node, path string) (float64, bool) {
	if c.zeroLed(n, path) {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Text, "_", ""), 64)
	switch {
	case n.Kind == String && err == nil && !math.IsInf(f, 0) && !math.IsNaN(f):
		c.fix(n.Pos, WrongType, n.Text, "%s is %s; it must be a number", path, n.describe())
	case n.Kind != Int && n.Kind != Float:
		c.Addf(n.Pos, WrongType, "%s is %s; it must be a number", path, n.describe())
	case err != nil || math.IsInf(f, 0) || math.IsNaN(f):
		c.Addf(n.Pos, OutOfRange, "%s is %s; it must be a finite number", path, n.describe())
	default:
		return f, true
	}
	return 0, false
}

func (c *Context) zeroLed(n *Node, path string) bool {
	if (n.Kind != Int && n.Kind != Float) || !leadingZero.MatchString(n.Text) {
		return false
	}
	sign, digits := "", strings.TrimLeft(n.Text, "+-")
	if n.Text[0] == '-' {
		sign = "-"
	}
	digits = strings.TrimLeft(digits, "0_")
	if digits == "" || digits[0] < '0' || digits[0] > '9' {
		digits = "0" + digits
	}
	c.fix(n.Pos, LeadingZero, sign+digits, "%s is %s; a number must not start with 0", path, clip(n.Text))
	return true
}

func (c *Context) boolean(n *Node, path string) (val, ok bool) {
	if n.Kind == Bool {
		v, err := strconv.ParseBool(strings.ToLower(n.Text))
		return v, err == nil
	}
	fix := ""
	switch strings.ToLower(n.Text) {
	case "yes", "on", "y", "1", "true":
		fix = "true"
	case "no", "off", "n", "0", "false":
		fix = "false"
	}
	c.fix(n.Pos, WrongType, fix, "%s is %s; it must be true or false", path, n.describe())
	return false, false
}

func (c *Context) text(n *Node, path string) (string, bool) {
	switch n.Kind {
	case String:
		return n.Text, c.shown(n, path)
	case Map, List:
		c.Addf(n.Pos, WrongType, "%s is %s; it must be text", path, n.describe())
	default:
		c.noText(n, path)
	}
	return "", false
}

// shown reports whether a text may be used. A name (a field with key name) must not contain invisible characters. They
// could make two names look alike, change the order in which a line is displayed, or end a comment in generated code.
func (c *Context) shown(n *Node, path string) bool {
	if c.tag.Get("yaml") != "name" || !strings.ContainsFunc(n.Text, hidden) {
		return true
	}
	visible := strings.TrimSpace(strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, n.Text))
	c.fix(n.Pos, BadName, visible, "%s is %q; a name must not contain control or invisible characters", path,
		clip(n.Text))
	return false
}

func hidden(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }

// noText reports a scalar that is not text. For a field with allowed values it suggests the nearest one instead of
// quotes.
func (c *Context) noText(n *Node, path string) {
	enum := split(c.tag.Get("enum"))
	switch {
	case c.tag.Get("now") == "-":
		c.Addf(n.Pos, NotYet, "%s is not supported yet", path)
	case len(enum) > 0:
		c.fix(n.Pos, UnknownValue, ir.Nearest(n.Text, enum), "%s is %s; use one of %s", path, clip(n.Text),
			strings.Join(enum, ", "))
	default:
		c.fix(n.Pos, WrongType, strconv.Quote(clip(n.Text)), "%s is %s; it must be text", path, n.describe())
	}
}

// fix records an input error and the correct text.
func (c *Context) fix(p ir.Pos, code ir.Code, fix, format string, args ...any) {
	c.Addf(p, code, format, args...)
	(*c.diags)[len(*c.diags)-1].Fix = fix
}
