package source

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// footnoteMarks are removed from both ends of labels.
const footnoteMarks = " :*.¹²³†‡"

// normaliseLabel returns the form in which labels are compared: NFKC, lower case, without accents and zero-width
// characters, with single spaces, and without footnoteMarks at the ends. Whole labels are compared, because the
// exchange house "Agente de Cambio La Nacional" is not the association "La Nacional".
func normaliseLabel(text string) string {
	var normal, letters strings.Builder
	flush := func() {
		normal.WriteString(withoutAccents(letters.String()))
		letters.Reset()
	}
	for _, r := range collapseSpaces(text) {
		if unicode.IsLetter(r) || unicode.IsMark(r) {
			letters.WriteRune(r)
			continue
		}
		flush()
		normal.WriteRune(r)
	}
	flush()
	return collapseSpaces(strings.Trim(normal.String(), footnoteMarks))
}

// withoutAccents removes accents and ligatures. text must have no digits and symbols, because NFKC would turn a
// superscript into a digit.
func withoutAccents(text string) string {
	var plain strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(norm.NFKC.String(text))) {
		if !unicode.IsMark(r) {
			plain.WriteRune(r)
		}
	}
	return norm.NFC.String(plain.String())
}

// collapseSpaces replaces white space by single spaces, and removes white space at the ends and zero-width characters.
func collapseSpaces(text string) string {
	var b strings.Builder
	blank := false
	for _, r := range text {
		switch {
		case isSpace(r):
			blank = b.Len() > 0
		case unicode.Is(unicode.Cf, r):
		default:
			if blank {
				b.WriteByte(' ')
				blank = false
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isSpace also includes control characters and spaces that Unicode does not count as white space: pages use them as
// separators.
func isSpace(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Zs, r) || unicode.IsControl(r) || r == '\u200b' || r == '\ufeff'
}
