package source

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// markupCostMax bounds the elements that a page may become. An HTML parser opens every unclosed <b>, <font> and the
// like again in each following paragraph: 400 of them and 5,000 paragraphs, 23 KB, become two million elements.
const markupCostMax = 4 * nodesMax

// nestingCostMax bounds the sum of the depths of all tags, because the parser searches the open elements at each tag.
// 20,000 elements at a depth of forty are less than a twentieth of it.
const (
	nestingCostMax = 20_000_000
	nestingMax     = 512 // the HTML parser refuses more
)

// formattingStack tracks the open formatting elements. It may count too many, which refuses a page that no
// institution writes; it counts too few only for pages crafted to deceive it.
type formattingStack struct {
	open   []startTag // the innermost last
	scopes []markupScope
	nested map[string]int // by name, open elements that need an end tag
	depth  int            // the sum of nested
}

type startTag struct{ name, raw string } // raw is the tag as written

// markupScope is an element within which formatting from outside can't be closed.
type markupScope struct {
	name  string
	begin int // index in formattingStack.open
}

// isCostlyMarkup reports whether a page would become far larger than it is. It reads the page twice, because the
// content of a script is text in HTML and markup in SVG.
func isCostlyMarkup(text string) bool {
	return markupCost(text, false) > markupCostMax || markupCost(text, true) > markupCostMax
}

// markupCost estimates the elements and texts of a parsed page.
func markupCost(text string, inScripts bool) int {
	m := formattingStack{nested: map[string]int{}}
	cost, nesting := 0, 0
	for tokens := html.NewTokenizer(strings.NewReader(text)); cost <= markupCostMax; {
		kind := tokens.Next()
		if nesting += min(m.depth, nestingMax); nesting > nestingCostMax {
			return markupCostMax + 1
		}
		switch kind {
		case html.ErrorToken:
			return cost
		case html.StartTagToken, html.SelfClosingTagToken:
			raw := string(tokens.Raw())
			name, _ := tokens.TagName()
			m.start(string(name), raw)
			if inScripts {
				tokens.NextIsNotRawText()
			}
		case html.EndTagToken:
			name, _ := tokens.TagName()
			m.end(string(name))
		}
		if kind != html.CommentToken && kind != html.DoctypeToken {
			cost += 1 + len(m.open)
		}
	}
	return cost
}

func (m *formattingStack) start(name, raw string) {
	if !closesItself(name) && !isFormatting(name) { // formatting is counted in open
		m.nested[name]++
		m.depth++
	}
	last := len(m.scopes) - 1
	if last >= 0 && (name == "tr" || isCell(name)) && isCell(m.scopes[last].name) {
		m.endScope(m.scopes[last].name) // a cell ends where the next begins
	}
	switch {
	case isScope(name):
		m.scopes = append(m.scopes, markupScope{name, len(m.open)})
	case isFormatting(name):
		m.push(name, raw)
	}
}

// push opens an element, unless three equal ones are open in its scope: a fourth replaces the first.
func (m *formattingStack) push(name, raw string) {
	same := 0
	for _, other := range m.open[m.begin():] {
		if other.raw == raw {
			same++
		}
	}
	if same < 3 {
		m.open = append(m.open, startTag{name, raw})
	}
}

func (m *formattingStack) end(name string) {
	if m.nested[name] > 0 {
		m.nested[name]--
		m.depth--
	}
	switch {
	case isFormatting(name):
		for i := len(m.open) - 1; i >= m.begin(); i-- {
			if m.open[i].name == name {
				m.open = slices.Delete(m.open, i, i+1)
				return
			}
		}
	case isScope(name):
		m.endScope(name)
	}
}

// endScope closes a scope. A table closes its open cells; any other element only the innermost scope.
func (m *formattingStack) endScope(name string) {
	at := len(m.scopes) - 1
	for name == "table" && at > 0 && (isCell(m.scopes[at].name) || m.scopes[at].name == "caption") {
		at--
	}
	if at < 0 || m.scopes[at].name != name {
		return
	}
	inside := slices.Clone(m.open[m.scopes[at].begin:])
	m.open = m.open[:m.scopes[at].begin]
	m.scopes = m.scopes[:at]
	for _, tag := range inside {
		m.push(tag.name, tag.raw)
	}
}

// begin is the index in open where the innermost scope begins.
func (m *formattingStack) begin() int {
	if len(m.scopes) == 0 {
		return 0
	}
	return m.scopes[len(m.scopes)-1].begin
}

func isCell(name string) bool { return name == "td" || name == "th" }

// isFormatting reports the elements that a parser opens again. Of <a> there is never more than one.
func isFormatting(name string) bool {
	return slices.Contains([]string{"b", "big", "code", "em", "font", "i", "s", "small", "strike", "strong", "tt", "u"}, name)
}

func isScope(name string) bool {
	return slices.Contains([]string{
		"table", "td", "th", "caption", "applet", "marquee", "object", "template", "select",
		"foreignobject", "desc", "mi", "mo", "mn", "ms", "mtext", "annotation-xml",
	}, name)
}

// closesItself reports elements without content, and those that end where the next of their kind begins, whose end
// tags pages omit.
func closesItself(name string) bool {
	return slices.Contains([]string{
		"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "path", "source", "track", "wbr",
		"p", "li", "dt", "dd", "td", "th", "tr", "tbody", "thead", "tfoot", "option", "optgroup", "colgroup",
	}, name)
}
