package tree

import "strings"

// yamlCounter counts the values of a YAML text without building them. The library needs about a second for 10^5 values
// and has no limit of its own, so a file with too many values is refused before the library reads it.
type yamlCounter struct {
	text  string
	at    int
	count int
	flow  int // open brackets

	isFresh bool // a value may start here
	owner   int  // the column of the key or dash whose value was read last
	entry   int  // the column of the first character after the line's dashes
}

// leastValues returns a number that the number of values of a YAML text reaches. It ends when the number exceeds a
// limit. If a text can be understood in two ways, it counts as few values as possible.
func leastValues(text string, limit int) int {
	c := &yamlCounter{text: text, isFresh: true, owner: -1}
	for c.at < len(text) && c.count <= limit {
		c.line()
	}
	return c.count
}

// line counts the values of a line, and of the lines that its quotes and block scalars reach.
func (c *yamlCounter) line() {
	start := c.at
	c.spaces()
	indent := c.at - start
	length := lineLength(c.text[c.at:])
	content := strings.TrimRight(c.text[c.at:c.at+length], " \t\r")
	isText := !c.isFresh && c.flow == 0 && indent > c.owner // it continues a plain scalar
	if content == "" || content[0] == '#' || isText {
		c.at += length + 1
		return
	}
	if c.flow == 0 {
		c.isFresh = true
		c.entry = indent
	}
	if content == "---" || strings.HasPrefix(content, "--- ") {
		c.owner = -1
		c.at += len("---")
		c.spaces()
	}
	for c.at < len(c.text) && c.text[c.at] != '\n' {
		if c.isFresh && c.flow == 0 && (c.text[c.at] == '|' || c.text[c.at] == '>') {
			c.block()
			return
		}
		c.token(start)
		c.spaces()
	}
	c.at++
}

func (c *yamlCounter) spaces() {
	for c.at < len(c.text) && strings.IndexByte(" \t\r", c.text[c.at]) >= 0 {
		c.at++
	}
}

// token reads one character, a text in quotes, an anchor, a tag or a comment. start is the offset of the line.
func (c *yamlCounter) token(start int) {
	at := c.at
	c.at++
	isEnd := c.at == len(c.text) || strings.IndexByte(" \t\r\n", c.text[c.at]) >= 0
	wasFresh := c.isFresh
	c.isFresh = false
	switch ch := c.text[at]; {
	case ch == '#' && (wasFresh || strings.IndexByte(" \t", c.text[at-1]) >= 0):
		c.at = at + lineLength(c.text[at:])
		c.isFresh = wasFresh
	case ch == '"' && wasFresh, ch == '\'' && wasFresh:
		c.at = endOfQuoted(c.text, at, ch)
		c.spaces()
		isEnd = c.flow > 0
		if isEnd && c.at < len(c.text) && c.text[c.at] == ':' {
			c.at++
			c.separator(start)
		}
	case wasFresh && (ch == '&' || ch == '!' || ch == '*'):
		for c.at < len(c.text) && strings.IndexByte(" \t\r\n,]}", c.text[c.at]) < 0 {
			c.at++
		}
		c.isFresh = true
	case ch == '-' && isEnd && wasFresh && c.flow == 0:
		c.count++
		c.isFresh = true
		c.owner = at - start
		c.spaces()
		c.entry = c.at - start
	case ch == ':' && isEnd:
		c.separator(start)
	case ch == ',' && c.flow > 0:
		c.count++
		c.isFresh = true
	case ch == '[' || ch == '{':
		if wasFresh || c.flow > 0 {
			c.flow++
			c.isFresh = true
		}
	case (ch == ']' || ch == '}') && c.flow > 0:
		c.flow--
	case ch == '?' && isEnd:
		c.isFresh = wasFresh
	}
}

// separator counts the key in front of a colon.
func (c *yamlCounter) separator(start int) {
	c.count++
	c.isFresh = true
	if c.flow == 0 {
		c.owner = min(c.entry, c.at-start)
	}
}

// block skips a block scalar: its header, and the lines that are further to the right than its key.
func (c *yamlCounter) block() {
	c.at += lineLength(c.text[c.at:]) + 1
	for c.at < len(c.text) {
		length := lineLength(c.text[c.at:])
		line := strings.TrimRight(c.text[c.at:c.at+length], " \t\r")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if line != "" && indent <= c.owner {
			return
		}
		c.at += length + 1
	}
}
