package conformance_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/apitest/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// optionsOf gives access to everything of a node.
func optionsOf(srv *apitest.Server) conformance.Options {
	return conformance.Options{Client: srv.Client, Wait: srv.Clock.Advance, Code: srv.Node.Code, Exhaust: true, Key: srv.Key()}
}

// TestNode_WithoutLimits checks a node without limits and key, and the number of requests. TestMutationsAreFound
// checks one with limits and keys.
func TestNode_WithoutLimits(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"))
	conformance.Run(t, srv.URL, conformance.Options{Client: srv.Client, Wait: srv.Clock.Advance})
	counted := 0
	for _, r := range srv.Requests() {
		if r.Status < 404 || r.Status == 429 || strings.HasPrefix(r.Path, "/v1/institutions/") {
			counted++
		}
	}
	t.Logf("%d requests, %d of them count", len(srv.Requests()), counted)
	if counted > 700 { // doc.go says 650
		t.Errorf("the kit asks %d times, and says 700 at most", counted)
	}
}

// TestCheck_NoServer: a server that does not answer is one finding, not one for each rule.
func TestCheck_NoServer(t *testing.T) {
	findings := conformance.Check(t.Context(), "http://127.0.0.1:1", conformance.Options{})
	if len(findings) != 1 || !strings.Contains(findings[0].Problems[0], "Options.Client") {
		t.Errorf("%d findings, the first: %v", len(findings), findings[0])
	}
}
