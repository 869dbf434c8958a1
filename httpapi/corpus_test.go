package httpapi

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// corpusWorkers is how many connections play the corpus side by side.
const corpusWorkers = 8

// TestO6_CorpusThroughServer plays the corpus of raw requests against the whole server, over TCP: what must be refused is, what must
// be served reaches the routes, no request gets two answers, and each refusal is the error object.
// The same where each connection sleeps as often as it can.
func TestO6_CorpusThroughServer(t *testing.T) {
	for name, start := range map[string]func(*testing.T, func(*Config)) *serving{
		"awake": func(t *testing.T, c func(*Config)) *serving { return serve(t, c) }, "asleep": serveAsleep,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(c *Config) {
				c.Limits = Limits{HeaderBytesMax: rawBufferBytes, BodyBytesMax: rawBodyBytesMax, ReadTimeout: rawPatience}
			})
			cases := make(chan rawCase)
			var workers sync.WaitGroup
			var refusals atomic.Int64
			for range corpusWorkers {
				workers.Go(func() {
					for c := range cases {
						answers, err := exchangeOver(must(net.Dial("tcp", s.address)), c)
						if err != nil {
							t.Errorf("%s: %v", c.name, err)
						}
						judgeCorpus(t, c, answers)
						refusals.Add(int64(len(slices.DeleteFunc(answers, func(a rawAnswer) bool { return a.status < 400 }))))
					}
				})
			}
			for _, c := range readRawCorpus(t) {
				cases <- c
			}
			close(cases)
			workers.Wait()
			if refusals.Load() < 300 {
				t.Errorf("only %d refusals", refusals.Load())
			}
		})
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
