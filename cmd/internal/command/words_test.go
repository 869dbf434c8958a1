package command

import (
	"strings"
	"testing"
)

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
