package suggest

import (
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/values"
)

// only returns the word of a topic if all words of the topic mean the same. several is true if they do not. The peso
// does not count.
func only(words []values.Word, about values.Topic) (found values.Word, several bool) {
	for _, w := range words {
		switch {
		case w.Topic != about || w.Meaning == values.Pesos:
		case found.Meaning == "":
			found = w
		case w.Meaning != found.Meaning:
			return values.Word{}, true
		}
	}
	return found, false
}

func has(words []values.Word, about values.Topic) bool {
	found, several := only(words, about)
	return several || found.Meaning != ""
}

// Elements with more prices than these say nothing about one of them by their names and texts.
const (
	namedPricesMax = 8   // by their names (id, class)
	smallPricesMax = 4   // noise, and contradictions
	pairMax        = 2   // a buy and a sell price
	nameMax        = 500 // bytes of a name
	noiseTextMax   = 200
)

// namingAttributes are the attributes of an element that may name its content.
var namingAttributes = []string{"id", "class", "name", "aria-label", "title", "alt", "data-currency", "data-type", "data-side", "data-label", "headers"}

// label finds the side, the currency and the channel of a price.
func (p *page) label(s *spot) {
	p.takeWord(s, values.AboutSide)
	p.takeWord(s, values.AboutCurrency)
	if channel := p.channelOf(s); channel.Meaning != "" {
		s.words[values.AboutChannel] = channel
	}
	if title, _ := only(p.title, values.AboutCurrency); title.Meaning != "" && s.lacks(values.AboutCurrency) && !s.lacks(values.AboutSide) {
		s.take("the title", title)
	}
}

// takeWord climbs from the element of a price until it finds words of a topic. It takes none if they do not clearly
// belong to the price.
func (p *page) takeWord(s *spot, about values.Topic) {
	if w, _ := only(values.Words(s.attribute), about); w.Meaning != "" {
		s.take("the attribute "+s.attribute, w)
		return
	}
	inTable := false
	for node := s.node; node != nil && node.DataAtom != atom.Body; node = node.Parent {
		w, where, done := values.Word{}, "", false
		if isCell(node) && !inTable {
			inTable = true
			w, where, done = p.tableWord(node, about)
			s.isUnclear = s.isUnclear || done
			done = done || w.Meaning != ""
		}
		if !done {
			w, where, done = p.elementWord(node, s, about)
		}
		if w.Meaning != "" {
			s.take(where, w)
		}
		if done {
			return
		}
	}
}

// elementWord looks for the word of a price in one of the elements around it: in its text or its names.
// done means that farther elements do not count.
func (p *page) elementWord(node *html.Node, s *spot, about values.Topic) (w values.Word, where string, done bool) {
	named := values.Word{}
	if node == s.node || p.isJSON || p.pricesIn(node) <= namedPricesMax {
		named, _ = only(p.names(node), about)
	}
	if words := p.wordsIn(node); has(words, about) && (node.DataAtom != atom.Table || about == values.AboutCurrency) {
		w, several := only(words, about)
		if !p.isJSON && (several || !p.isOutside(node, about)) {
			w = p.aligned(node, s, about)
		}
		conflict := named.Meaning != "" && named.Meaning != w.Meaning
		if w.Meaning == "" || about == values.AboutCurrency && conflict {
			s.isUnclear = about == values.AboutSide || conflict || p.pricesIn(node) <= smallPricesMax
			return values.Word{}, "", true
		}
		return w, "the text of " + describe(node), true
	}
	return named, "the names of " + describe(node), named.Meaning != ""
}

// names returns the words in the names of an element, and in the label element for it.
func (p *page) names(node *html.Node) (words []values.Word) {
	for _, attr := range node.Attr {
		if slices.Contains(namingAttributes, attr.Key) && len(attr.Val) <= nameMax {
			words = append(words, values.Words(attr.Val)...)
		}
		if attr.Key == "id" {
			words = append(words, values.Words(p.labelsOf[attr.Val])...)
		}
	}
	return words
}

func (p *page) tokensOf(node *html.Node) []token {
	return p.stream[p.spans[node].start:p.spans[node].end]
}

func (p *page) wordsIn(node *html.Node) (words []values.Word) {
	for _, t := range p.tokensOf(node) {
		if t.spot == nil && t.word.Topic != "" {
			words = append(words, t.word)
		}
	}
	return words
}

func (p *page) pricesIn(node *html.Node) (count int) {
	for _, t := range p.tokensOf(node) {
		if t.spot != nil {
			count++
		}
	}
	return count
}

// headingBefore returns the text of the heading just before an element, or "".
func headingBefore(node *html.Node) string {
	sibling := node.PrevSibling
	for sibling != nil && sibling.Type != html.ElementNode {
		sibling = sibling.PrevSibling
	}
	headings := []atom.Atom{atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Caption, atom.Legend}
	if sibling == nil || !slices.Contains(headings, sibling.DataAtom) {
		return ""
	}
	return markup.VisibleText(sibling)
}

// relevant returns the prices of an element and its words of a topic, in their order.
func (p *page) relevant(node *html.Node, about values.Topic) (tokens []token) {
	for _, t := range p.tokensOf(node) {
		if t.spot != nil || t.word.Topic == about && t.word.Meaning != values.Pesos {
			tokens = append(tokens, t)
		}
	}
	return tokens
}

// isOutside reports whether a word of an element stands before or behind all of its prices.
func (p *page) isOutside(node *html.Node, about values.Topic) bool {
	tokens := p.relevant(node, about)
	return len(tokens) > 0 && (tokens[0].spot == nil || tokens[len(tokens)-1].spot == nil)
}

// aligned returns the one of several words in an element that belongs to a price: single words and equally many prices
// must alternate.
func (p *page) aligned(node *html.Node, s *spot, about values.Topic) (own values.Word) {
	var runs [][]token // words, prices, words ...
	for _, t := range p.relevant(node, about) {
		last := len(runs) - 1
		switch {
		case last < 0 || (runs[last][0].spot == nil) != (t.spot == nil):
			runs = append(runs, []token{t})
		case t.spot == nil && runs[last][len(runs[last])-1].word.Meaning == t.word.Meaning: // "US$ Dólar"
		default:
			runs[last] = append(runs[last], t)
		}
	}
	if len(runs) < 2 || len(runs)%2 != 0 {
		return values.Word{}
	}
	words, prices := 0, 1 // the place of each in a pair of runs
	if runs[0][0].spot != nil {
		words, prices = 1, 0
	}
	for pair := range slices.Chunk(runs, 2) {
		if len(pair[words]) != 1 || len(pair[prices]) != len(runs[prices]) {
			return values.Word{}
		}
		if slices.ContainsFunc(pair[prices], func(t token) bool { return t.spot == s }) {
			own = pair[words][0].word
		}
	}
	return own
}

func isCell(node *html.Node) bool { return node.DataAtom == atom.Td || node.DataAtom == atom.Th }

func cellOf(node *html.Node) *html.Node {
	for node != nil && !isCell(node) {
		node = node.Parent
	}
	return node
}

// gridOf returns the cells of the table around a cell, by row and column, and the place of the cell. A cell that spans
// several places is at each of them.
func (p *page) gridOf(cell *html.Node) (grid [][]*html.Node, row, column int) {
	table := markup.EnclosingTable(cell)
	if p.tables[table] == nil {
		p.tables[table] = markup.ReadTable(table, nil).Grid()
	}
	for i, cells := range p.tables[table] {
		if j := slices.Index(cells, cell); j >= 0 {
			return p.tables[table], i, j
		}
	}
	return nil, 0, 0
}

// tableWord finds a word in a cell, in the heading of its column, or in its row. isUnclear means that the table has
// words which do not clearly belong to the cell.
func (p *page) tableWord(cell *html.Node, about values.Topic) (w values.Word, where string, isUnclear bool) {
	grid, row, column := p.gridOf(cell)
	if grid == nil {
		return values.Word{}, "", true
	}
	var rowWords []values.Word
	for _, other := range grid[row] {
		if p.pricesIn(other) == 0 {
			rowWords = append(rowWords, p.wordsIn(other)...)
		}
	}
	inRow, _ := only(rowWords, about)
	switch own, several := only(p.wordsIn(cell), about); {
	case several:
		return values.Word{}, "", p.pricesIn(cell) == 1
	case own.Meaning != "" && about == values.AboutCurrency && inRow.Meaning != "" && inRow.Meaning != own.Meaning:
		return values.Word{}, "", true // "USD 66.10" in the row of the euro
	case own.Meaning != "":
		return own, "the cell", false
	}
	for i := row - 1; i >= 0; i-- {
		if column >= len(grid[i]) || p.pricesIn(grid[i][column]) > 0 {
			continue
		}
		heading, several := only(p.wordsIn(grid[i][column]), about)
		isShifted := len(grid[i]) != len(grid[row]) || isWide(grid[i], grid[i][column]) || isWide(grid[row], cell)
		if several || heading.Meaning != "" && isShifted {
			return values.Word{}, "", true // a cell too few, too many or too wide
		}
		if heading.Meaning != "" {
			return heading, "the heading of the column", false
		}
	}
	return inRow, "the row", false
}

// isWide reports whether a cell is in several columns of a row.
func isWide(row []*html.Node, cell *html.Node) bool {
	first := slices.Index(row, cell)
	return first >= 0 && slices.Contains(row[first+1:], cell)
}

// channelOf finds the channel in the row, the heading, or the small element around a price.
func (p *page) channelOf(s *spot) (w values.Word) {
	if cell := cellOf(s.node); cell != nil {
		w, _, _ = p.tableWord(cell, values.AboutChannel)
		return w
	}
	for node := s.node; w.Meaning == "" && node != nil && node.DataAtom != atom.Body && p.pricesIn(node) <= pairMax; node = node.Parent {
		w, _ = only(p.wordsIn(node), values.AboutChannel)
	}
	return w
}

// hasNoise reports whether words beside a price say that it is not a rate of today.
func (p *page) hasNoise(s *spot) bool {
	if cell := cellOf(s.node); cell != nil {
		grid, row, column := p.gridOf(cell)
		for i := range row {
			if column < len(grid[i]) && p.pricesIn(grid[i][column]) == 0 && has(p.wordsIn(grid[i][column]), values.AboutOther) {
				return true
			}
		}
	}
	isPair := false
	for node := s.node; node != nil && node.DataAtom != atom.Body; node = node.Parent {
		count := p.pricesIn(node)
		if has(values.Words(headingBefore(node)), values.AboutOther) || count <= smallPricesMax && has(p.names(node), values.AboutOther) {
			return true
		}
		if count <= pairMax && !isPair || node.DataAtom == atom.Tr || node.DataAtom == atom.Li {
			isPair = count == pairMax
			if text := markup.VisibleText(node); len(text) < noiseTextMax && has(values.Words(text), values.AboutOther) {
				return true
			}
		}
	}
	return false
}
