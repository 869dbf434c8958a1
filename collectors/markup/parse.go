package markup

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/tasard/tasard/collectors/values"
)

// Limits of an HTML page. Pages of institutions have about ten thousand elements, and tables of a few hundred rows.
const (
	nodesMax      = 100_000      // elements and texts
	tagsMax       = 2 * nodesMax // checked before parsing: a parsed page needs fifty times the memory of its text
	childrenMax   = 10_000       // child nodes of one element, texts included
	attributesMax = 1000         // of one element
	attributeMax  = 64 << 10     // bytes of a class or an id: a selector compares those of all ancestors of each element
)

// Parse parses HTML as browsers do. It returns an error if the page would need too much time or memory.
func Parse(text string) (*html.Node, error) {
	if tags := strings.Count(text, "<"); tags > tagsMax {
		return nil, fmt.Errorf("the page has %d tags, at most %d are accepted", tags, tagsMax)
	}
	if isCostlyMarkup(text) {
		return nil, errors.New("the page opens too many elements within each other")
	}
	document, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the HTML can't be read: %w", err)
	}
	if err := checkSize(document); err != nil {
		return nil, err
	}
	for _, template := range Find(document, "template") { // browsers don't show it
		template.Parent.RemoveChild(template)
	}
	return document, nil
}

// checkSize bounds the time of a selector. Some selectors, such as :nth-child, count the siblings before each element.
// A selector of several parts visits all ancestors of each element once for each part; the parser limits the depth.
func checkSize(document *html.Node) error {
	nodes := 0
	for node := range document.Descendants() {
		if node.PrevSibling == nil {
			if children := len(slices.Collect(node.Parent.ChildNodes())); children > childrenMax {
				return fmt.Errorf("an element has %d child nodes, at most %d are accepted", children, childrenMax)
			}
		}
		if nodes++; nodes > nodesMax {
			return fmt.Errorf("the page has more than %d elements and texts", nodesMax)
		}
		isLong := func(a html.Attribute) bool { return (a.Key == "class" || a.Key == "id") && len(a.Val) > attributeMax }
		if len(node.Attr) > attributesMax || slices.ContainsFunc(node.Attr, isLong) {
			return errors.New("the attributes of an element are too long")
		}
	}
	return nil
}

// Find returns the elements below a node that a CSS selector matches, in the order of the page.
func Find(node *html.Node, selector string) []*html.Node {
	return goquery.NewDocumentFromNode(node).Find(selector).Nodes
}

// IsSelector reports whether a CSS selector is valid. goquery reports no error for an invalid selector, which just
// matches no element. So IsSelector tests the selector after "*, ": the whole matches every element if the selector is
// valid, and none if it is invalid.
func IsSelector(text string) bool {
	return goquery.Single("*, " + text).Match(&html.Node{Type: html.ElementNode, Data: "p"})
}

// markupCostMax bounds the number of elements of a parsed page. An HTML parser repeats every unclosed formatting
// element, such as <b>, in each later paragraph. So 400 unclosed elements and 5,000 paragraphs, a page of 23 KB, become
// two million elements.
const markupCostMax = 5 * nodesMax

// openTags estimates the open formatting elements and the open scopes, the innermost last. A scope is an element that
// limits end tags, such as a table cell: an end tag inside it does not close formatting elements outside it. The
// estimate is too high only for pages that no institution writes, and too low only for pages made to deceive it.
type openTags []openTag

type openTag struct {
	name, raw string // raw is the tag with its attributes; "" = a scope
}

// isCostlyMarkup reports whether parsing the page would need too much time or memory. It estimates the cost for HTML,
// with scripts as text, and for SVG, with scripts as markup.
func isCostlyMarkup(text string) bool {
	return markupCost(text, false) > markupCostMax || markupCost(text, true) > markupCostMax
}

// markupCost estimates the number of elements and texts of a parsed page. inScripts means that the content of scripts
// is markup.
func markupCost(text string, inScripts bool) int {
	var open openTags
	cost := 0
	for tokens := html.NewTokenizer(strings.NewReader(text)); cost <= markupCostMax; {
		kind := tokens.Next()
		switch kind {
		case html.ErrorToken:
			return cost
		case html.StartTagToken, html.SelfClosingTagToken:
			raw := string(tokens.Raw())
			name, _ := tokens.TagName()
			open = open.start(string(name), raw)
			if inScripts {
				tokens.NextIsNotRawText()
			}
		case html.EndTagToken:
			name, _ := tokens.TagName()
			open = open.end(string(name))
		}
		if kind != html.CommentToken && kind != html.DoctypeToken {
			cost += 1 + len(open)
		}
	}
	return cost
}

func (o openTags) start(name, raw string) openTags {
	if scope := o.scope(); scope >= 0 && (name == "tr" || isCell(name)) && isCell(o[scope].name) {
		o = o.end(o[scope].name) // a new cell or row ends the open cell
	}
	switch {
	case isScope(name):
		return append(o, openTag{name, ""})
	case isFormatting(name):
		return o.push(openTag{name, raw})
	}
	return o
}

// push opens a formatting element. The parser keeps at most three equal open elements in a scope.
func (o openTags) push(tag openTag) openTags {
	equal := 0
	for _, other := range o[o.scope()+1:] {
		if other == tag {
			equal++
		}
	}
	if equal < 3 {
		o = append(o, tag)
	}
	return o
}

// end closes the innermost formatting element of this name in the scope, or the innermost scope if it has this name.
// The end of a table also closes its open cells and caption. Open formatting elements of a closed scope continue in the
// surrounding one.
func (o openTags) end(name string) openTags {
	scope := o.scope()
	for i := len(o) - 1; i > scope; i-- {
		if o[i].name == name {
			return slices.Delete(o, i, i+1)
		}
	}
	for name == "table" && scope > 0 && (isCell(o[scope].name) || o[scope].name == "caption") {
		scope = o[:scope].scope()
	}
	if scope < 0 || o[scope].name != name {
		return o
	}
	inner := slices.Clone(o[scope+1:])
	o = o[:scope]
	for _, tag := range inner {
		if tag.raw != "" {
			o = o.push(tag)
		}
	}
	return o
}

// scope returns the index of the innermost scope, or -1.
func (o openTags) scope() int {
	i := len(o) - 1
	for i >= 0 && o[i].raw != "" {
		i--
	}
	return i
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

// textBytesMax bounds a visible text. No document is larger.
const textBytesMax = 8 << 20

// Text returns an attribute of an element or, with attribute "", its visible text. For scripts and other invisible
// elements it returns the source text. It returns false if the element does not have the attribute.
func Text(node *html.Node, attribute string) (string, bool) {
	if attribute != "" {
		for _, attr := range node.Attr {
			if attr.Namespace == "" && strings.EqualFold(attr.Key, attribute) {
				return attr.Val, true
			}
		}
		return "", false
	}
	if IsInvisible(node) || node.DataAtom == atom.Textarea {
		var source strings.Builder
		for child := node.FirstChild; child != nil; child = child.NextSibling {
			if child.Type == html.TextNode {
				source.WriteString(child.Data)
			}
		}
		return source.String(), true
	}
	return VisibleText(node), true
}

// VisibleText returns the visible text of an element, with single spaces. It surrounds inner elements with spaces, so
// that two numbers, or a price and a footnote's digit, do not become one number. Elements such as <b> (isTypeface) get
// no spaces.
func VisibleText(node *html.Node) string {
	var b strings.Builder
	writeVisible(&b, node, textBytesMax)
	return values.CollapseSpaces(b.String())
}

// writeVisible writes the visible text of a node until b has bytesMax bytes. It is recursive; the HTML parser limits
// the depth.
func writeVisible(b *strings.Builder, node *html.Node, bytesMax int) {
	if b.Len() >= bytesMax {
		return
	}
	if node.Type == html.TextNode {
		b.WriteString(node.Data[:min(len(node.Data), bytesMax-b.Len())])
		return
	}
	if IsInvisible(node) || IsStruckOut(node) {
		b.WriteByte(' ')
		return
	}
	separate := node.Type == html.ElementNode && !isTypeface(node)
	if separate {
		b.WriteByte(' ')
	}
	for child := node.FirstChild; child != nil; child = child.NextSibling {
		if IsHidden(child) {
			b.WriteByte(' ')
			continue
		}
		writeVisible(b, child, bytesMax)
	}
	if separate {
		b.WriteByte(' ')
	}
}

// IsInvisible reports whether an element's content, such as a script, is not text for people.
func IsInvisible(node *html.Node) bool {
	invisible := []atom.Atom{atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Noembed, atom.Noframes}
	return node.Type == html.ElementNode && slices.Contains(invisible, node.DataAtom)
}

// IsStruckOut reports whether an element is struck out. Some pages strike out the old rate beside the new rate.
func IsStruckOut(node *html.Node) bool {
	return node.DataAtom == atom.Del || node.DataAtom == atom.S || node.DataAtom == atom.Strike
}

// IsHidden reports whether an attribute hides an element. Do not call it for a locator's own element, because a price
// may be hidden until the user clicks.
func IsHidden(node *html.Node) bool {
	for _, attr := range node.Attr {
		switch attr.Key {
		case "hidden":
			return true
		case "style":
			style := strings.ToLower(strings.Join(strings.Fields(attr.Val), ""))
			if strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

// isTypeface reports whether an element only changes the look of its text, such as <b>.
func isTypeface(node *html.Node) bool {
	return slices.Contains([]atom.Atom{atom.B, atom.Strong, atom.I, atom.Em, atom.U, atom.Font, atom.Wbr}, node.DataAtom)
}
