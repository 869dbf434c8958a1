package markup

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// markupCostMax bounds the number of elements of a parsed page. An HTML parser repeats every unclosed formatting
// element, such as <b>, in each later paragraph. So 400 unclosed elements and 5,000 paragraphs, a page of 23 KB, become
// two million elements.
const markupCostMax = 4 * nodesMax

// nestingCostMax bounds the sum of the depths at all tags, because the parser searches all open elements at each tag. A
// page with 20,000 elements at a depth of forty has less than a twentieth of that sum.
const (
	nestingCostMax = 20_000_000
	nestingMax     = 512 // maximum depth; the HTML parser rejects deeper pages
)

// formattingStack estimates the open formatting elements. The estimate is too high only for pages that no institution
// writes, and too low only for pages made to deceive it.
type formattingStack struct {
	open   []startTag     // open formatting elements, the innermost last
	scopes []markupScope  // open scopes, the innermost last
	nested map[string]int // number of other open elements that need an end tag, by name
	depth  int            // sum of all numbers in nested
}

type startTag struct{ name, raw string } // raw is the tag with its attributes

// markupScope is an element that limits end tags, such as a table cell: an end tag inside it does not close formatting
// elements outside it.
type markupScope struct {
	name  string
	begin int // index in formattingStack.open of the scope's first formatting element
}

// isCostlyMarkup reports whether parsing the page would need too much time or memory. It estimates the cost for HTML,
// with scripts as text, and for SVG, with scripts as markup.
func isCostlyMarkup(text string) bool {
	return markupCost(text, false) > markupCostMax || markupCost(text, true) > markupCostMax
}

// markupCost estimates the number of elements and texts of a parsed page. It returns more than markupCostMax if the
// nesting exceeds nestingCostMax. inScripts means that the content of scripts is markup.
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
	if !closesItself(name) && !isFormatting(name) { // m.open lists the formatting elements
		m.nested[name]++
		m.depth++
	}
	last := len(m.scopes) - 1
	if last >= 0 && (name == "tr" || isCell(name)) && isCell(m.scopes[last].name) {
		m.endScope(m.scopes[last].name) // a new cell or row ends the open cell
	}
	switch {
	case isScope(name):
		m.scopes = append(m.scopes, markupScope{name, len(m.open)})
	case isFormatting(name):
		m.push(name, raw)
	}
}

// push opens a formatting element. The parser keeps at most three equal open elements in a scope.
func (m *formattingStack) push(name, raw string) {
	equal := 0
	for _, other := range m.open[m.scopeBegin():] {
		if other.raw == raw {
			equal++
		}
	}
	if equal < 3 {
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
		for i := len(m.open) - 1; i >= m.scopeBegin(); i-- {
			if m.open[i].name == name {
				m.open = slices.Delete(m.open, i, i+1)
				return
			}
		}
	case isScope(name):
		m.endScope(name)
	}
}

// endScope closes the innermost scope if it has this name. The end of a table also closes its open cells and caption.
// Open formatting elements of the scope continue in the surrounding scope.
func (m *formattingStack) endScope(name string) {
	index := len(m.scopes) - 1
	for name == "table" && index > 0 && (isCell(m.scopes[index].name) || m.scopes[index].name == "caption") {
		index--
	}
	if index < 0 || m.scopes[index].name != name {
		return
	}
	inner := slices.Clone(m.open[m.scopes[index].begin:])
	m.open = m.open[:m.scopes[index].begin]
	m.scopes = m.scopes[:index]
	for _, tag := range inner {
		m.push(tag.name, tag.raw)
	}
}

// scopeBegin returns the index in m.open of the first formatting element in the innermost scope.
func (m *formattingStack) scopeBegin() int {
	if len(m.scopes) == 0 {
		return 0
	}
	return m.scopes[len(m.scopes)-1].begin
}

func isCell(name string) bool { return name == "td" || name == "th" }

// isFormatting reports whether the parser repeats an unclosed element of this name. <a> is not in the list, because
// only one <a> can be open.
func isFormatting(name string) bool {
	return slices.Contains([]string{"b", "big", "code", "em", "font", "i", "s", "small", "strike", "strong", "tt", "u"}, name)
}

func isScope(name string) bool {
	return slices.Contains([]string{
		"table", "td", "th", "caption", "applet", "marquee", "object", "template", "select",
		"foreignobject", "desc", "mi", "mo", "mn", "ms", "mtext", "annotation-xml",
	}, name)
}

// closesItself reports whether an element needs no end tag: it is empty, or the next element of its kind ends it.
func closesItself(name string) bool {
	return slices.Contains([]string{
		"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "path", "source", "track", "wbr",
		"p", "li", "dt", "dd", "td", "th", "tr", "tbody", "thead", "tfoot", "option", "optgroup", "colgroup",
	}, name)
}
