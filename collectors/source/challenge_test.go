package source

import "testing"

func TestDocument_Challenge(t *testing.T) {
	for name, page := range walls() {
		if (&Document{Body: []byte(page)}).Challenge() == "" {
			t.Errorf("%s is not recognised", name)
		}
	}
	for name, page := range map[string]string{
		"an error page": pageOf("<h1>Error 500</h1><p>Intente mas tarde</p>"), "nothing": "", "a workbook": "PK\x03\x04captcha", "JSON": `{"error":"x"}`,
	} {
		if mark := (&Document{Body: []byte(page)}).Challenge(); mark != "" {
			t.Errorf("%s is taken for a challenge by %q", name, mark)
		}
	}
}
