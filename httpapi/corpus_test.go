package httpapi

import (
	"slices"
	"testing"
)

// TestO6_CorpusThroughServer plays the corpus of raw requests against the whole server: what must be refused is, what must
// be served reaches the routes, and nobody gets two answers to one request.
func TestO6_CorpusThroughServer(t *testing.T) {
	f := newFixture(t, func(c *Config) {
		c.Limits = Limits{HeaderBytesMax: rawBufferBytes, BodyBytesMax: rawBodyBytesMax, ReadTimeout: rawPatience}
	})
	played := 0
	for _, c := range readRawCorpus(t) {
		answers, err := serveRaw(f.server.http, c, rawBufferBytes)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		played++
		if most := len(c.want) + 1; len(answers) > most || c.connection == "close" && len(answers) > len(c.want) {
			t.Errorf("%s: %d answers to %d requests", c.name, len(answers), len(c.want))
		}
		if len(answers) < len(c.want) {
			t.Errorf("%s: %d answers, want %d", c.name, len(answers), len(c.want))
			continue
		}
		for i, want := range c.want {
			a := answers[i]
			if slices.Contains(want, 200) {
				if !slices.Contains(want, a.status) && (a.status >= 500 || a.status >= 400 && a.code == "malformed_request") {
					t.Errorf("%s: answer %d is %d %s to a good request", c.name, i+1, a.status, a.code)
				}
			} else if !slices.Contains(want, a.status) || a.code == "" || !a.closes {
				t.Errorf("%s: answer %d is %d %q, closes %v, want %v", c.name, i+1, a.status, a.code, a.closes, want)
			}
		}
	}
	if played == 0 {
		t.Fatal("nothing was played")
	}
}
