package source

import (
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of a page, well above what institutions have: some ten thousand elements, and tables of a few hundred rows.
const (
	nodesMax    = 100_000
	tagsMax     = 2 * nodesMax // known before the page is taken apart, which takes fifty times its size
	childrenMax = 10_000       // of one element, texts between them included
	// selectorCostMax is ten times that of a page of 20,000 elements, each inside of forty.
	selectorCostMax = 200_000_000
)

// extractHTML reads a page of HTML: one element for each value, or rows with labels.
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

// expectHTML holds the page to what must be true before anything in it is believed.
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

// parseHTML reads HTML as browsers do. It fails for a document that is nested so deeply that only an attack can be meant.
func parseHTML(text string) *goquery.Document {
	if tags := strings.Count(text, "<"); tags > tagsMax {
		failf(WrongContent, "the page has %d tags; at most %d make a page", tags, tagsMax)
	}
	if isCostlyMarkup(text) {
		failf(WrongContent, "the page opens so many elements inside of others, or again and again, that only an attack can be meant")
	}
	document, err := goquery.NewDocumentFromReader(strings.NewReader(text))
	if err != nil {
		panic(&Failure{Kind: WrongContent, Detail: "the HTML can't be read: " + err.Error(), Cause: err})
	}
	checkSelectorCost(document)
	document.Find("template").Remove() // what stands in one is an example until a script makes something of it
	return document
}

// checkSelectorCost bounds what selectors have to go through: some count the elements before each element, and those of several parts go
// up from each element through all that are around it, once for each part, and read their attributes on the way.
func checkSelectorCost(document *goquery.Document) {
	all, cost := 0, 0
	around, twice := map[*html.Node]int{}, map[*html.Node]int{} // the weight of what is around an element, and the sum of that
	for node := range document.Get(0).Descendants() {
		if node.PrevSibling == nil {
			if children := len(slices.Collect(node.Parent.ChildNodes())); children > childrenMax {
				failf(WrongContent, "an element has %d parts; at most %d make a page", children, childrenMax)
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
			failf(WrongContent, "the page is nested so deeply, or its attributes are so long, that only an attack can be meant")
		}
		if node.FirstChild != nil {
			around[node] = around[node.Parent] + selectorWeight(node)
			twice[node] = twice[node.Parent] + around[node]
		}
	}
}

// selectorWeight is about how long it takes to hold an element against a selector.
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
	columns   map[string]*html.Node // cells by the normalised heading of their column, nil where there is no table
}

func (s *htmlScope) texts(place *Locator) []foundText {
	nodes := s.selection.Nodes
	switch {
	case place.Column != "":
		nodes = nil
		if cell := s.columns[normaliseLabel(place.Column)]; cell != nil {
			nodes = []*html.Node{cell}
		}
	case place.At != "":
		nodes = s.selection.Find(place.At).Nodes
	}
	var texts []foundText
	for _, node := range nodes {
		if text, ok := nodeText(node, place.Attribute); ok {
			texts = append(texts, foundText{text: text})
		}
	}
	return texts
}

// nodeText is the attribute of an element, or its visible text. A script has its source for a text, but only when it is meant
// itself: inside other elements it is not visible.
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

// visibleText is what a reader sees, with single blanks. Every element but bold and italic type sets its content apart: the
// digits of a footnote must never become those of a price, and two numbers side by side never one.
func visibleText(node *html.Node) string {
	var b strings.Builder
	writeVisible(&b, node, textBytesMax)
	return collapseSpaces(b.String())
}

// writeVisible goes down as deep as the document, which the reader of HTML bounds, until there are so many bytes.
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

// isInvisibleElement finds what has text, but none for people.
func isInvisibleElement(node *html.Node) bool {
	unseen := []atom.Atom{atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Noembed, atom.Noframes}
	return node.Type == html.ElementNode && slices.Contains(unseen, node.DataAtom)
}

// isStruckOut finds what stands there as no longer true: the rate of yesterday beside that of today.
func isStruckOut(node *html.Node) bool {
	return node.DataAtom == atom.Del || node.DataAtom == atom.S || node.DataAtom == atom.Strike
}

// isHidden finds what says of itself that nobody sees it. Only the inside of a place is asked: a place itself may well stand in a
// window that a click opens.
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

// isTypeface finds the elements that change how letters look and nothing else.
func isTypeface(node *html.Node) bool {
	return slices.Contains([]atom.Atom{atom.B, atom.Strong, atom.I, atom.Em, atom.U, atom.Font, atom.Wbr}, node.DataAtom)
}
