package source

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/values"
)

// extractHTML reads the quotes of an HTML page as its definition says (r.page.Extract).
func (r *parser) extractHTML(text string) {
	document, failure := parseHTML(text)
	if r.fail(failure) {
		return
	}
	r.expectHTML(document)
	whole := &htmlScope{node: document}
	r.readDate(whole)
	switch {
	case r.failure != nil:
	case r.page.Extract.Method == HTMLFields:
		r.readFields(whole)
	default:
		r.readGroups(r.htmlRows(document))
	}
}

// expectHTML fails unless the page meets the conditions in Extract.Expect.
func (r *parser) expectHTML(document *html.Node) {
	for _, expected := range r.page.Extract.Expect {
		nodes := markup.Find(document, expected.At)
		if len(nodes) == 0 {
			r.failf(Layout, "want a text as %s at %s, found no element", quoted(expected.Pattern), quoted(expected.At))
		}
		for _, node := range nodes {
			if text := values.NormaliseSpaces(markup.VisibleText(node)); len(text) > patternBytesMax || !r.pattern(expected.Pattern).MatchString(text) {
				r.failf(WrongContent, "want a text as %s at %s, found %s", quoted(expected.Pattern), quoted(expected.At), quoted(text))
			}
		}
	}
}

// parseHTML parses HTML. It fails if the page would need too much time or memory.
func parseHTML(text string) (*html.Node, *Failure) {
	document, err := markup.Parse(text)
	if err != nil {
		return nil, &Failure{Kind: WrongContent, Detail: err.Error(), Cause: err}
	}
	return document, nil
}

// htmlScope is the part of a page in which a locator searches: an HTML document, or one row of a document.
type htmlScope struct {
	node    *html.Node
	columns map[string]*html.Node // cells of the row by normalised heading; nil if no locator names a column
}

func (s *htmlScope) texts(locator *Locator) ([]sourceText, *Failure) {
	nodes := []*html.Node{s.node}
	switch {
	case locator.Column != "":
		nodes = nil
		if cell := s.columns[values.NormaliseLabel(locator.Column)]; cell != nil {
			nodes = []*html.Node{cell}
		}
	case locator.At != "":
		nodes = markup.Find(s.node, locator.At)
	}
	var texts []sourceText
	for _, node := range nodes {
		if text, ok := markup.Text(node, locator.Attribute); ok {
			texts = append(texts, sourceText{text: text})
		}
	}
	return texts, nil
}

// Texts returns the texts that the locator finds in a page, as Parse does.
func (p *Locator) Texts(document *html.Node) (texts []string) {
	r := &parser{source: &Definition{}, patterns: map[string]*regexp.Regexp{}}
	for _, t := range r.textsAt(&htmlScope{node: document}, p) {
		texts = append(texts, t.text)
	}
	return texts
}

// htmlRows returns the rows that the CSS selector Rows.At selects. If the definition names no columns, all rows are in
// one group. If it names columns by their headings (Locator.Column), htmlRows omits rows without these columns, and
// groups the others by the row of headings above them. In a row with a cell too few or too many, prices may be below
// the wrong headings, so htmlRows removes them.
func (r *parser) htmlRows(document *html.Node) [][]scope {
	extract := r.page.Extract.Rows
	nodes := markup.Find(document, extract.At)
	if len(nodes) == 0 {
		r.failf(Layout, "there is no row at %s", quoted(extract.At))
	}
	headings := extract.headings()
	tables, groups, groupIndexes := map[*html.Node]*markup.Table{}, [][]scope{}, map[*html.Node]int{}
	for _, node := range nodes[:min(len(nodes), markup.RowsMax)] {
		row := &htmlScope{node: node}
		var heading *html.Node
		if len(headings) > 0 {
			tableNode := markup.EnclosingTable(node)
			if tableNode != nil && tables[tableNode] == nil {
				tables[tableNode] = markup.ReadTable(tableNode, headings)
			}
			var aligned bool
			if row.columns, heading, aligned = tables[tableNode].Cells(node); row.columns == nil {
				continue
			}
			if !aligned { // keep only the label, for the note about missing prices
				maps.DeleteFunc(row.columns, func(name string, _ *html.Node) bool { return name != values.NormaliseLabel(extract.Label.Column) })
			}
		}
		index, known := groupIndexes[heading]
		if !known {
			index = len(groups)
			groupIndexes[heading], groups = index, append(groups, nil)
		}
		groups[index] = append(groups[index], row)
	}
	if len(groups) == 0 {
		r.failf(Layout, "nothing at %s is a row (tr) of a table that has the headings %s once each above it",
			quoted(extract.At), strings.Join(headings, ", "))
	}
	return groups
}

// headings returns the headings of the columns that the definition names (Locator.Column), in the form of
// values.NormaliseLabel.
func (e *Rows) headings() []string {
	locators := []*Locator{&e.Label, e.Buy, e.Sell, e.Value}
	if e.Date != nil {
		locators = append(locators, &e.Date.Locator)
	}
	var headings []string
	for _, locator := range locators {
		if locator == nil || locator.Column == "" {
			continue
		}
		if heading := values.NormaliseLabel(locator.Column); !slices.Contains(headings, heading) {
			headings = append(headings, heading)
		}
	}
	return headings
}

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
