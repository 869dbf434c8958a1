package values

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// footnoteMarks are removed from both ends of a label by NormaliseLabel.
const footnoteMarks = " :*.¹²³†‡"

// NormaliseLabel normalises a label, such as a bank's name in a row or a column heading: lower case, single spaces, no
// accents or zero-width characters, no footnoteMarks at the ends. Labels are equal if their normalised texts are equal.
// A common part is not enough: the exchange house "Agente de Cambio La Nacional" is not the association "La Nacional".
func NormaliseLabel(text string) string {
	var normal, letters strings.Builder
	flush := func() {
		normal.WriteString(withoutAccents(letters.String()))
		letters.Reset()
	}
	for _, r := range CollapseSpaces(text) {
		if unicode.IsLetter(r) || unicode.IsMark(r) {
			letters.WriteRune(r)
			continue
		}
		flush()
		normal.WriteRune(r)
	}
	flush()
	return CollapseSpaces(strings.Trim(normal.String(), footnoteMarks))
}

// withoutAccents removes accents and splits ligatures. text must not contain digits or symbols, because the Unicode
// normalisation NFKC would turn a superscript into a digit.
func withoutAccents(text string) string {
	var plain strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(norm.NFKC.String(text))) {
		if !unicode.IsMark(r) {
			plain.WriteRune(r)
		}
	}
	return norm.NFC.String(plain.String())
}

// CollapseSpaces replaces each run of white space by a single space. It removes white space at the ends, and all
// Unicode format characters (Cf).
func CollapseSpaces(text string) string {
	var b strings.Builder
	blank := false
	for _, r := range text {
		switch {
		case IsSpace(r):
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

// NormaliseSpaces replaces all white space except newlines by spaces, because \s in a pattern matches only ASCII.
func NormaliseSpaces(text string) string {
	return strings.Map(func(c rune) rune {
		if IsSpace(c) && c != '\n' {
			return ' '
		}
		return c
	}, text)
}

// IsSpace reports whether a character separates words. It includes control characters and zero-width spaces, which
// separate words on some pages but are not in unicode.IsSpace.
func IsSpace(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Zs, r) || unicode.IsControl(r) || r == '\u200b' || r == '\ufeff'
}
