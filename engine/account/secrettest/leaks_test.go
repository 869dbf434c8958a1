package secrettest

import (
	"encoding/base64"
	"encoding/hex"
	"testing"
)

// TestS5_ControlLeaks plants each form, and texts that contain the secret among others.
func TestS5_ControlLeaks(t *testing.T) {
	const secret = "tasard_live_canary+of/a key"
	planted := []string{
		base64.StdEncoding.EncodeToString([]byte("1" + secret + "x")), base64.URLEncoding.EncodeToString([]byte("12" + secret)),
		hex.EncodeToString([]byte("x" + secret)),
	}
	for _, form := range Forms(secret) {
		planted = append(planted, form)
	}
	for _, text := range planted {
		if len(Leaks("a log with "+text+" in it", "another", secret)) == 0 {
			t.Errorf("%q is not found", text)
		}
	}
	if found := Leaks("a file with tasard_live_canary in it", secret); len(found) > 0 {
		t.Errorf("reported without reason: %q", found)
	}
}
