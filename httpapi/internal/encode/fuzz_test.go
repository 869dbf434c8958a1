package encode

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzText: every text becomes one valid JSON string that reads back as the text, its broken bytes replaced.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "plain", "\"\\\b\f\n\r\t\x00\x1f\x7f", "<&>\u2028\u2029", "\xff\xc3(", "ñ€😀", "\xed\xa0\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		encoded := Text(nil, text)
		var decoded string
		if err := json.Unmarshal(encoded, &decoded); err != nil || !utf8.Valid(encoded) {
			t.Fatalf("%q becomes %q: %v", text, encoded, err)
		}
		if want := strings.Map(func(r rune) rune { return r }, text); decoded != want {
			t.Fatalf("%q reads back as %q, want %q", text, decoded, want)
		}
		if bytes.Contains(encoded, []byte(`\u2028`)) || bytes.Contains(encoded, []byte(`\u003c`)) && !strings.Contains(text, `\u003c`) {
			t.Fatalf("%q is escaped too much: %q", text, encoded)
		}
	})
}
