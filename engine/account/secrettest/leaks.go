package secrettest

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Leaks returns a message for each form of a secret that a text contains.
func Leaks(text string, secrets ...string) []string {
	var found []string
	for _, secret := range secrets {
		for name, form := range Forms(secret) {
			if strings.Contains(text, form) {
				found = append(found, fmt.Sprintf("%q was written, %s", secret, name))
			}
		}
	}
	return found
}

// Forms returns a secret in several forms, by the names of the forms. A base64 text depends on what precedes the
// secret. Forms returns the part that does not depend on that, for each of the three possible alignments.
func Forms(secret string) map[string]string {
	raw := []byte(secret)
	reversed := slices.Clone(raw)
	slices.Reverse(reversed)
	forms := map[string]string{
		"raw": secret, "in hex": hex.EncodeToString(raw), "in HEX": strings.ToUpper(hex.EncodeToString(raw)),
		"for URLs": url.QueryEscape(secret), "reversed": string(reversed),
	}
	for shift := range 3 {
		for name, encoding := range map[string]*base64.Encoding{"in base64": base64.StdEncoding, "in base64 for URLs": base64.URLEncoding} {
			text := encoding.EncodeToString(append(make([]byte, shift), raw...))
			forms[fmt.Sprintf("%s at %d", name, shift)] = text[(shift*8+5)/6 : (shift+len(raw))*8/6]
		}
	}
	return forms
}
