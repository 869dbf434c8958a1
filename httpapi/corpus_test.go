package httpapi

import (
	"net/http"
	"slices"
	"sync"
	"testing"
)

// corpusWorkers is how many connections play the corpus side by side.
const corpusWorkers = 8

// TestO6_CorpusThroughServer plays the corpus of raw requests against the whole server, over TCP: what must be refused is, what must
// be served reaches the routes, nobody gets two answers to one request, and whatever is refused is the error object.
// The same where each connection sleeps as often as it can.
func TestO6_CorpusThroughServer(t *testing.T) {
	for name, sleeps := range map[string]bool{"awake": false, "asleep": true} {
		t.Run(name, func(t *testing.T) {
			s := serveAsleep(t, sleeps, func(c *Config) {
				c.Limits = Limits{HeaderBytesMax: rawBufferBytes, BodyBytesMax: rawBodyBytesMax, ReadTimeout: rawPatience}
			})
			defer s.stop(t)
			playCorpus(t, s)
		})
	}
}

func playCorpus(t *testing.T, s *serving) {
	t.Helper()
	cases := make(chan rawCase)
	var workers sync.WaitGroup
	var mu sync.Mutex
	played, errors := 0, 0
	for range corpusWorkers {
		workers.Go(func() {
			for c := range cases {
				answers, err := exchangeRaw(s.address, c)
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				judgeCorpus(t, c, answers)
				mu.Lock()
				played++
				errors += len(slices.DeleteFunc(answers, func(a rawAnswer) bool { return a.status < 400 }))
				mu.Unlock()
			}
		})
	}
	all := readRawCorpus(t)
	for _, c := range all {
		cases <- c
	}
	close(cases)
	workers.Wait()
	t.Logf("%d cases, %d refusals, each the error object", played, errors)
	if played != len(all) || errors < 300 {
		t.Fatalf("%d of %d cases were played, with %d refusals", played, len(all), errors)
	}
}

// judgeCorpus holds what the whole server answered against the case. Behind the guard are routes, which know few of the paths.
func judgeCorpus(t *testing.T, c rawCase, answers []rawAnswer) {
	t.Helper()
	if most := len(c.want) + 1; len(answers) > most || c.connection == "close" && len(answers) > len(c.want) {
		t.Errorf("%s: %d answers to %d requests", c.name, len(answers), len(c.want))
	}
	if len(answers) < len(c.want) {
		t.Errorf("%s: %d answers, want %d", c.name, len(answers), len(c.want))
		return
	}
	for i, a := range answers {
		if a.status >= 400 && a.code == "" {
			t.Errorf("%s: answer %d is %d without an error object", c.name, i+1, a.status)
		}
	}
	for i, want := range c.want {
		a := answers[i]
		if slices.Contains(want, http.StatusOK) {
			if !slices.Contains(want, a.status) && (a.status >= 500 || a.status >= 400 && a.code == "malformed_request") {
				t.Errorf("%s: answer %d is %d %s to a good request", c.name, i+1, a.status, a.code)
			}
		} else if !slices.Contains(want, a.status) || a.code == "" || !a.closes {
			t.Errorf("%s: answer %d is %d %q, closes %v, want %v", c.name, i+1, a.status, a.code, a.closes, want)
		}
	}
}
