package markup

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
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
