package source

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// footnoteMarks stand at the ends of labels and mean nothing there.
const footnoteMarks = " :*.¹²³†‡"

// normaliseLabel is the form in which labels are compared: letters in NFKC, small and without accents; one blank where any
// blanks are (U+00A0 too), nothing where characters have no width; no colon, point, asterisk or superscript at the ends.
// Labels are equal or they are not: containment would take the house "Agente de Cambio La Nacional" for the association
// "La Nacional".
func normaliseLabel(text string) string {
	var normal, letters strings.Builder
	flush := func() {
		normal.WriteString(plainLetters(letters.String()))
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

// plainLetters are the letters alone: é is e, ﬁ is fi. Only letters come here: NFKC would make the superscript of a footnote
// a digit.
func plainLetters(letters string) string {
	var plain strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(norm.NFKC.String(letters))) {
		if !unicode.IsMark(r) {
			plain.WriteRune(r)
		}
	}
	return norm.NFC.String(plain.String())
}

// collapseSpaces puts one blank where any blanks are, and none at the ends. What has no width is dropped.
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

// isSpace knows more blanks than white space has: pages set names and numbers apart with what no eye can tell from a blank.
func isSpace(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Zs, r) || unicode.IsControl(r) || r == '\u200b' || r == '\ufeff'
}
