package source

import (
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of an HTML page. Pages of institutions have about ten thousand elements, and tables of a few hundred rows.
const (
	nodesMax    = 100_000      // elements and texts
	tagsMax     = 2 * nodesMax // checked before parsing: a parsed page needs fifty times the memory of its text
	childrenMax = 10_000       // child nodes of one element, texts included
	// selectorCostMax limits the cost that checkSelectorCost estimates. It is ten times the cost of a page with 20,000
	// elements at a depth of forty.
	selectorCostMax = 200_000_000
)

// extractHTML reads the quotes of an HTML page as its definition says (r.page.Extract).
func (r *parser) extractHTML(text string) {
	document := parseHTML(text)
	r.expectHTML(document)
	whole := &htmlScope{selection: document.Selection}
	r.readDate(whole)
	if r.page.Extract.Method == HTMLFields {
		r.readFields(whole)
		return
	}
	r.readGroups(r.htmlRows(document))
}

// expectHTML fails (see failf) unless the page meets the conditions that its definition has in Extract.Expect.
func (r *parser) expectHTML(document *goquery.Document) {
	for _, expected := range r.page.Extract.Expect {
		nodes := document.Find(expected.At).Nodes
		if len(nodes) == 0 {
			failf(Layout, "want a text as %s at %s, found no element", quoted(expected.Pattern), quoted(expected.At))
		}
		for _, node := range nodes {
			if text := normaliseSpaces(visibleText(node)); len(text) > patternBytesMax || !r.pattern(expected.Pattern).MatchString(text) {
				failf(WrongContent, "want a text as %s at %s, found %s", quoted(expected.Pattern), quoted(expected.At), quoted(text))
			}
		}
	}
}

// parseHTML parses HTML as browsers do. It fails if the page would need too much time or memory.
func parseHTML(text string) *goquery.Document {
	if tags := strings.Count(text, "<"); tags > tagsMax {
		failf(WrongContent, "the page has %d tags, at most %d are accepted", tags, tagsMax)
	}
	if isCostlyMarkup(text) {
		failf(WrongContent, "the page opens too many elements within each other")
	}
	document, err := goquery.NewDocumentFromReader(strings.NewReader(text))
	if err != nil {
		panic(&Failure{Kind: WrongContent, Detail: "the HTML can't be read: " + err.Error(), Cause: err})
	}
	checkSelectorCost(document)
	document.Find("template").Remove() // browsers don't show it
	return document
}

// checkSelectorCost bounds the time of a selector. Some selectors, such as :nth-child, count the siblings before each
// element. A selector of several parts visits all ancestors of each element once for each part.
func checkSelectorCost(document *goquery.Document) {
	nodes, cost := 0, 0
	ancestorWeight := map[*html.Node]int{} // sum of selectorWeight of an element and its ancestors
	ancestorCost := map[*html.Node]int{}   // sum of ancestorWeight of an element and its ancestors
	for node := range document.Get(0).Descendants() {
		if node.PrevSibling == nil {
			if children := len(slices.Collect(node.Parent.ChildNodes())); children > childrenMax {
				failf(WrongContent, "an element has %d child nodes, at most %d are accepted", children, childrenMax)
			}
		}
		if nodes++; nodes > nodesMax {
			failf(WrongContent, "the page has more than %d elements and texts", nodesMax)
		}
		if node.Type != html.ElementNode {
			continue
		}
		cost += ancestorCost[node.Parent]
		if cost > selectorCostMax {
			failf(WrongContent, "the page is nested too deeply, or its attributes are too long")
		}
		if node.FirstChild != nil {
			ancestorWeight[node] = ancestorWeight[node.Parent] + selectorWeight(node)
			ancestorCost[node] = ancestorCost[node.Parent] + ancestorWeight[node]
		}
	}
}

// selectorWeight estimates the time to compare one element with a selector.
func selectorWeight(node *html.Node) int {
	weight := 1 + len(node.Attr)/8
	for _, attr := range node.Attr {
		if attr.Key == "class" || attr.Key == "id" {
			weight += len(attr.Val) / 64
		}
	}
	return weight
}

// htmlScope is the part of a page in which a locator searches: an HTML document, or one row of it. A locator says where
// a text is, by a CSS selector or the heading of a column.
type htmlScope struct {
	selection *goquery.Selection
	columns   map[string]*html.Node // cells of the row by normalised heading; nil if no locator names a column
}

func (s *htmlScope) texts(locator *Locator) []sourceText {
	nodes := s.selection.Nodes
	switch {
	case locator.Column != "":
		nodes = nil
		if cell := s.columns[normaliseLabel(locator.Column)]; cell != nil {
			nodes = []*html.Node{cell}
		}
	case locator.At != "":
		nodes = s.selection.Find(locator.At).Nodes
	}
	var texts []sourceText
	for _, node := range nodes {
		if text, ok := nodeText(node, locator.Attribute); ok {
			texts = append(texts, sourceText{text: text})
		}
	}
	return texts
}

// nodeText returns an attribute of an element or, with attribute "", its visible text. For scripts and other invisible
// elements it returns the source text. It returns false if the element does not have the attribute.
func nodeText(node *html.Node, attribute string) (string, bool) {
	if attribute != "" {
		for _, attr := range node.Attr {
			if attr.Namespace == "" && strings.EqualFold(attr.Key, attribute) {
				return attr.Val, true
			}
		}
		return "", false
	}
	if isInvisibleElement(node) || node.DataAtom == atom.Textarea {
		var source strings.Builder
		for child := node.FirstChild; child != nil; child = child.NextSibling {
			if child.Type == html.TextNode {
				source.WriteString(child.Data)
			}
		}
		return source.String(), true
	}
	return visibleText(node), true
}

// visibleText returns the visible text of an element, with single spaces. It puts spaces around inner elements, so that
// two numbers, or a price and the digit of a footnote, do not become one number. Elements such as <b> get no spaces
// (see isTypeface).
func visibleText(node *html.Node) string {
	var b strings.Builder
	writeVisible(&b, node, textBytesMax)
	return collapseSpaces(b.String())
}

// writeVisible writes the visible text of a node until b has bytesMax bytes. Its recursion is bounded, because the HTML
// parser limits the depth of a document.
func writeVisible(b *strings.Builder, node *html.Node, bytesMax int) {
	if b.Len() >= bytesMax {
		return
	}
	if node.Type == html.TextNode {
		b.WriteString(node.Data[:min(len(node.Data), bytesMax-b.Len())])
		return
	}
	if isInvisibleElement(node) || isStruckOut(node) {
		b.WriteByte(' ')
		return
	}
	separate := node.Type == html.ElementNode && !isTypeface(node)
	if separate {
		b.WriteByte(' ')
	}
	for child := node.FirstChild; child != nil; child = child.NextSibling {
		if isHidden(child) {
			b.WriteByte(' ')
			continue
		}
		writeVisible(b, child, bytesMax)
	}
	if separate {
		b.WriteByte(' ')
	}
}

func isInvisibleElement(node *html.Node) bool {
	invisible := []atom.Atom{atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Noembed, atom.Noframes}
	return node.Type == html.ElementNode && slices.Contains(invisible, node.DataAtom)
}

// isStruckOut reports whether an element is struck out. Some pages strike out the old rate beside the new rate.
func isStruckOut(node *html.Node) bool {
	return node.DataAtom == atom.Del || node.DataAtom == atom.S || node.DataAtom == atom.Strike
}

// isHidden reports whether an attribute hides an element. It must not be called for the element that a locator selects,
// because a price may be hidden until the user clicks.
func isHidden(node *html.Node) bool {
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
