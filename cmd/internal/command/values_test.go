package command

import (
	"strings"
	"testing"

	"github.com/tasard/tasard/node"
)

func TestValues_Accounts(t *testing.T) {
	var o node.HTTP
	proxies := prefixesValue(&o.TrustedProxies)
	for _, text := range []string{"10.0.0.0/8", "192.0.2.7, fd00::/8", "::1"} {
		if err := proxies.Set(text); err != nil {
			t.Error(err)
		}
	}
	if got := proxies.String(); got != "10.0.0.0/8,192.0.2.7/32,fd00::/8,::1/128" {
		t.Errorf("the proxies are %s", got)
	}
	for _, text := range []string{"", "x", "10.0.0.0", "10.0.0.1/8", "0.0.0.0/0", "::/0", "::ffff:10.0.0.0/104", "10.0.0.0/33", "10.0.0.0/8,", "fe80::1%eth0"} {
		if err := prefixesValue(&o.TrustedProxies).Set(text); (err == nil) != (text == "10.0.0.0") {
			t.Errorf("%q: %v", text, err)
		}
	}
	var text string
	page := URL(&text)
	for text, good := range map[string]bool{
		"https://example.com/keys#a": true, "http://example.com": true, "https://ana:secret@example.com": false,
		"https://ana:secret@example.com:port": false, "https://ana:secret@[::1": false, "://ana:secret@x": false, "ftp://example.com": false, "/keys": false, "https://": false,
		"https://example.com/>; rel=x, <y": false, "https://example.com/\"": false, "https://example.com/\n": false, "https://example.com/\u00e9": false,
		"https://example.com/" + strings.Repeat("x", urlBytesMax): false,
	} {
		if err := page.Set(text); (err == nil) != good || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"serve", "demo", "import", "export"}
	for word, want := range map[string]string{"srve": "serve", "exprot": "export", "demos": "demo", "zzz": "", "": ""} {
		got := DidYouMean(word, known)
		if want != "" {
			want = " (did you mean " + want + "?)"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// FuzzConfig wants every text to be read or refused with a place, never a panic.
func FuzzConfig(f *testing.F) {
	f.Add("listen = ':8080'\n[a]\nb = 1\n")
	f.Add("a.b = [1, 2]\n\"listen\" = true\n")
	f.Add("listen = '''\nlisten = 1\n'''")
	known := []string{"data", "listen", "log-level", "no-collect", "quota-day"}
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := ParseConfig("tasard.toml", text, known)
		if err != nil && !strings.HasPrefix(err.Error(), "tasard.toml:") {
			t.Errorf("%q does not begin with the file's name", err)
		}
		for name, line := range lines {
			if line.Line < 1 || line.Line > strings.Count(text, "\n")+1 {
				t.Errorf("%s is said to stand in line %d", name, line.Line)
			}
		}
	})
}
