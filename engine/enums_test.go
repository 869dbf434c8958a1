package engine

import (
	"strings"
	"testing"
	"time"
)

// enum is a closed list and its parser.
type enum struct {
	list  []string
	parse func(string) (string, bool)
}

func texts[T ~string](list []T) []string {
	var all []string
	for _, word := range list {
		all = append(all, string(word))
	}
	return all
}

func asText[T ~string](parse func(string) (T, bool)) func(string) (string, bool) {
	return func(text string) (string, bool) {
		word, ok := parse(text)
		return string(word), ok
	}
}

func enums() map[string]enum {
	return map[string]enum{
		"unspecified branch digital cash transfer": {texts(Channels()), asText(ParseChannel)},
		"commercial reference":                     {texts(Kinds()), asText(ParseKind)},
		"buy sell":                                 {texts(Operations()), asText(ParseOperation)},
	}
}

func TestQ3_EnumsAreByteExact(t *testing.T) {
	for contract, closed := range enums() {
		for _, word := range closed.list {
			for _, wrong := range []string{
				"", strings.ToUpper(word), strings.ToUpper(word[:1]) + word[1:], word + " ", " " + word, word[:len(word)-1], word + "s", word + "\x00",
				contract,
			} {
				if got, ok := closed.parse(wrong); ok || got != "" {
					t.Errorf("%q is read as %q", wrong, got)
				}
			}
		}
	}
}

func TestDatePrecision(t *testing.T) {
	published := time.Unix(1_780_000_000, 0)
	for _, c := range []struct {
		effective Date
		published time.Time
		want      DatePrecision
	}{
		{0, time.Time{}, PrecisionUnknown}, {1, time.Time{}, PrecisionDay}, {0, published, PrecisionDatetime}, {1, published, PrecisionDatetime},
	} {
		if got := precisionOf(c.effective, c.published); got != c.want {
			t.Errorf("date %d, published %v: %s, want %s", c.effective, c.published, got, c.want)
		}
	}
}
