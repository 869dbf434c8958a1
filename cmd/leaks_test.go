package cmd

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// leaks names the secrets that can be found in a text in any of their shapes.
func leaks(text string, secrets []string) []string {
	var found []string
	for _, secret := range secrets {
		for shape, trace := range traces(secret) {
			if strings.Contains(text, trace) {
				found = append(found, fmt.Sprintf("%q was written, %s", secret, shape))
			}
		}
	}
	return found
}

// traces are the shapes of a secret. Base64 depends on what stands before: of each of the three alignments the middle is kept.
func traces(secret string) map[string]string {
	raw := []byte(secret)
	reversed := slices.Clone(raw)
	slices.Reverse(reversed)
	out := map[string]string{
		"raw": secret, "hex": hex.EncodeToString(raw), "HEX": strings.ToUpper(hex.EncodeToString(raw)),
		"for URLs": url.QueryEscape(secret), "reversed": string(reversed),
	}
	for shift := range 3 {
		for name, encoding := range map[string]*base64.Encoding{"base64": base64.StdEncoding, "base64 for URLs": base64.URLEncoding} {
			text := encoding.EncodeToString(append(make([]byte, shift), raw...))
			out[fmt.Sprintf("%s %d", name, shift)] = text[(shift*8+5)/6 : (shift+len(raw))*8/6]
		}
	}
	return out
}

// TestS5_ControlLeaks plants each shape.
func TestS5_ControlLeaks(t *testing.T) {
	const secret = "tasard_live_canary+of/a key"
	for shape, trace := range traces(secret) {
		if len(leaks("a file with "+trace+" in it", []string{secret})) == 0 {
			t.Errorf("%s is not found", shape)
		}
	}
	for _, planted := range []string{base64.StdEncoding.EncodeToString([]byte("1" + secret + "x")), base64.URLEncoding.EncodeToString([]byte("12" + secret))} {
		if len(leaks(planted, []string{secret})) == 0 {
			t.Errorf("%q is not found", planted)
		}
	}
	if found := leaks("a file with tasard_live_canary in it", []string{secret}); len(found) > 0 {
		t.Errorf("reported without reason: %q", found)
	}
}
