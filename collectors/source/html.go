package source

import (
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of a page. Pages of institutions have some ten thousand elements, and tables of a few hundred rows.
const (
	nodesMax    = 100_000
	tagsMax     = 2 * nodesMax // checked before parsing, which needs fifty times the size of the page
	childrenMax = 10_000       // of one element, texts between them included
	// selectorCostMax is ten times the cost of 20,000 elements at a depth of forty.
	selectorCostMax = 200_000_000
)

// extractHTML reads a page of HTML: an element for each value, or rows with labels.
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

// expectHTML checks what a valid page contains.
func (r *parser) expectHTML(document *goquery.Document) {
	for _, want := range r.page.Extract.Expect {
		nodes := document.Find(want.At).Nodes
		if len(nodes) == 0 {
			failf(Layout, "want a text as %s at %s, found no element", quoted(want.Pattern), quoted(want.At))
		}
		for _, node := range nodes {
			if text := normaliseSpaces(visibleText(node)); len(text) > patternBytesMax || !r.pattern(want.Pattern).MatchString(text) {
				failf(WrongContent, "want a text as %s at %s, found %s", quoted(want.Pattern), quoted(want.At), quoted(text))
			}
		}
	}
}

// parseHTML parses HTML as browsers do. A page that is nested like an attack is a failure.
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
	document.Find("template").Remove() // not visible
	return document
}

// checkSelectorCost bounds the work of selectors: some count the elements before each element, and those of several
// parts check all ancestors of each element, once for each part.
func checkSelectorCost(document *goquery.Document) {
	all, cost := 0, 0
	around, twice := map[*html.Node]int{}, map[*html.Node]int{} // the weight of the ancestors of an element, and the sum of these weights
	for node := range document.Get(0).Descendants() {
		if node.PrevSibling == nil {
			if children := len(slices.Collect(node.Parent.ChildNodes())); children > childrenMax {
				failf(WrongContent, "an element has %d child nodes, at most %d are accepted", children, childrenMax)
			}
		}
		if all++; all > nodesMax {
			failf(WrongContent, "the page has more than %d elements and texts", nodesMax)
		}
		if node.Type != html.ElementNode {
			continue
		}
		cost += twice[node.Parent]
		if cost > selectorCostMax {
			failf(WrongContent, "the page is nested too deeply, or its attributes are too long")
		}
		if node.FirstChild != nil {
			around[node] = around[node.Parent] + selectorWeight(node)
			twice[node] = twice[node.Parent] + around[node]
		}
	}
}

// selectorWeight is about the time to compare an element with a selector.
func selectorWeight(node *html.Node) int {
	all := 1 + len(node.Attr)/8
	for _, own := range node.Attr {
		if own.Key == "class" || own.Key == "id" {
			all += len(own.Val) / 64
		}
	}
	return all
}

// htmlScope is a document, or one row of it.
type htmlScope struct {
	selection *goquery.Selection
	columns   map[string]*html.Node // cells by the normalised heading of their column, nil without a table
}

func (s *htmlScope) texts(locator *Locator) []foundText {
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
	var texts []foundText
	for _, node := range nodes {
		if text, ok := nodeText(node, locator.Attribute); ok {
			texts = append(texts, foundText{text: text})
		}
	}
	return texts
}

// nodeText returns an attribute of an element, or its visible text. The text of a script is its source, but only if
// the locator means the script itself.
func nodeText(node *html.Node, attribute string) (string, bool) {
	if attribute != "" {
		for _, own := range node.Attr {
			if own.Namespace == "" && strings.EqualFold(own.Key, attribute) {
				return own.Val, true
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

// visibleText returns the text that a reader sees, with single spaces. Every element except bold and italic type is
// separated by a space: the digit of a footnote must never join a price, nor two numbers each other.
func visibleText(node *html.Node) string {
	var b strings.Builder
	writeVisible(&b, node, textBytesMax)
	return collapseSpaces(b.String())
}

// writeVisible writes up to bytesMax bytes. Its depth is that of the document, which the HTML parser limits.
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
	apart := node.Type == html.ElementNode && !isTypeface(node)
	if apart {
		b.WriteByte(' ')
	}
	for child := node.FirstChild; child != nil; child = child.NextSibling {
		if isHidden(child) {
			b.WriteByte(' ')
			continue
		}
		writeVisible(b, child, bytesMax)
	}
	if apart {
		b.WriteByte(' ')
	}
}

func isInvisibleElement(node *html.Node) bool {
	unseen := []atom.Atom{atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Noembed, atom.Noframes}
	return node.Type == html.ElementNode && slices.Contains(unseen, node.DataAtom)
}

// isStruckOut reports an element with outdated text, such as yesterday's rate beside today's.
func isStruckOut(node *html.Node) bool {
	return node.DataAtom == atom.Del || node.DataAtom == atom.S || node.DataAtom == atom.Strike
}

// isHidden reports an element that is hidden by an attribute. Only elements within a place are checked; the place
// itself may be a window that a click opens.
func isHidden(node *html.Node) bool {
	for _, own := range node.Attr {
		switch own.Key {
		case "hidden":
			return true
		case "style":
			style := strings.ToLower(strings.Join(strings.Fields(own.Val), ""))
			if strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

// isTypeface reports an element that only changes how text looks.
func isTypeface(node *html.Node) bool {
	return slices.Contains([]atom.Atom{atom.B, atom.Strong, atom.I, atom.Em, atom.U, atom.Font, atom.Wbr}, node.DataAtom)
}
