package source

import (
	"strings"

	"github.com/tasard/tasard/collectors/markup"
)

// addressPageBytesMax is how much of a page AttributeOf parses. A parsed page needs many times the memory of its text.
const addressPageBytesMax = 1 << 20

// AttributeOf returns an attribute of the first HTML element that a CSS selector matches. The attribute contains the
// address of the next request (see AddressFrom). The error is a *Failure of kind Layout.
func AttributeOf(page *Document, selector, attribute string) (string, error) {
	beginning := *page
	beginning.Body = page.Body[:min(len(page.Body), addressPageBytesMax)]
	document, failure := parseHTML(decodeText(&beginning))
	if failure != nil {
		return "", &Failure{Kind: Layout, Detail: page.URL + ", which names the next address: " + failure.Detail, Cause: failure}
	}
	elements := markup.Find(document, selector)
	if len(elements) == 0 {
		return "", Failf(Layout, "%s has no element %s, which names the next address", page.URL, selector)
	}
	text, ok := markup.Text(elements[0], attribute)
	if text = strings.TrimSpace(text); !ok || text == "" {
		return "", Failf(Layout, "%s: the element %s has no attribute %s, which names the next address", page.URL, selector, attribute)
	}
	return text, nil
}
