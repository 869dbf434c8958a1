package engine

import "strings"

// nearestBytesMax is the number of bytes of a text that are compared. More would take too long (see EditDistance).
const nearestBytesMax = 32

// EditDistance returns the Damerau-Levenshtein distance (optimal string alignment) of two words, ignoring case. The
// running time grows with the product of the lengths, so unknown words must be truncated.
func EditDistance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	beforeLast, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], beforeLast[j-1]+1)
			}
		}
		beforeLast, last, row = last, row, beforeLast
	}
	return last[len(b)]
}

// NearestCurrency returns the currency with the code or name most similar to a text, as a code, or "" if none is
// similar.
func (c *Catalogue) NearestCurrency(text string) string {
	return nearest(text, func(compare func(word, result string)) {
		for _, currency := range c.currencyList {
			compare(currency.Code, currency.Code)
			compare(currency.Name, currency.Code)
		}
	})
}

// NearestInstitution returns the active institution with the id or name most similar to a text, as an id, or "" if none
// is similar.
func (c *Catalogue) NearestInstitution(text string) string {
	return nearest(text, func(compare func(word, result string)) {
		for _, institution := range c.institutionList {
			if institution.Active {
				compare(institution.ID, institution.ID)
				compare(institution.Name, institution.ID)
			}
		}
	})
}

// nearest returns the result of the word most similar to text. The edit distance of a similar word is at most a third
// of the length of text. each calls compare for every word.
func nearest(text string, each func(compare func(word, result string))) string {
	text = text[:min(len(text), nearestBytesMax)]
	best, bestDistance := "", max(2, len(text)/3+1)
	each(func(word, result string) {
		if difference := len(word) - len(text); max(difference, -difference) >= bestDistance {
			return
		}
		if distance := EditDistance(text, word); distance < bestDistance {
			best, bestDistance = result, distance
		}
	})
	return best
}
