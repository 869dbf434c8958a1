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
	nodesMax    = 100_000      // elements and texts
	tagsMax     = 2 * nodesMax // checked before parsing: a parsed page needs fifty times the memory of its text
	childrenMax = 10_000       // child nodes of one element, texts included
	// selectorCostMax limits the cost that checkSelectorCost estimates. It is ten times the cost of a page with 20,000
	// elements at a depth of forty.
	selectorCostMax = 200_000_000
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
	if err := checkSelectorCost(document); err != nil {
		return nil, err
	}
	for _, template := range Find(document, "template") { // browsers don't show it
		template.Parent.RemoveChild(template)
	}
	return document, nil
}

// checkSelectorCost bounds the time of a selector. Some selectors, such as :nth-child, count the siblings before each
// element. A selector of several parts visits all ancestors of each element once for each part.
func checkSelectorCost(document *html.Node) error {
	nodes, cost := 0, 0
	ancestorWeight := map[*html.Node]int{} // sum of selectorWeight of an element and its ancestors
	ancestorCost := map[*html.Node]int{}   // sum of ancestorWeight of an element and its ancestors
	for node := range document.Descendants() {
		if node.PrevSibling == nil {
			if children := len(slices.Collect(node.Parent.ChildNodes())); children > childrenMax {
				return fmt.Errorf("an element has %d child nodes, at most %d are accepted", children, childrenMax)
			}
		}
		if nodes++; nodes > nodesMax {
			return fmt.Errorf("the page has more than %d elements and texts", nodesMax)
		}
		if node.Type != html.ElementNode {
			continue
		}
		cost += ancestorCost[node.Parent]
		if cost > selectorCostMax {
			return errors.New("the page is nested too deeply, or its attributes are too long")
		}
		if node.FirstChild != nil {
			ancestorWeight[node] = ancestorWeight[node.Parent] + selectorWeight(node)
			ancestorCost[node] = ancestorCost[node.Parent] + ancestorWeight[node]
		}
	}
	return nil
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
