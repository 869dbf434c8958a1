package conformance_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/apitest/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// optionsOf let the kit see all of a node.
func optionsOf(srv *apitest.Server) conformance.Options {
	return conformance.Options{Client: srv.Client, Wait: srv.Clock.Advance, Code: srv.Node.Code, Exhaust: true, Key: srv.Key()}
}

// TestNode: this node keeps the contract, with and without limits.
func TestNode(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"), apitest.Quota(100_000, 0))
	conformance.Run(t, srv.URL, optionsOf(srv))
}

// TestNode_WithoutLimits: the same without limits and without a key.
func TestNode_WithoutLimits(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"))
	conformance.Run(t, srv.URL, conformance.Options{Client: srv.Client, Wait: srv.Clock.Advance})
}

// requestsTold is what doc.go says that the kit asks at most.
const requestsTold = 700

// TestNode_Requests: how often the kit asks is what it says.
func TestNode_Requests(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"))
	conformance.Check(t.Context(), srv.URL, conformance.Options{Client: srv.Client, Wait: srv.Clock.Advance})
	counted := 0
	for _, r := range srv.Requests() {
		if r.Status < 404 || r.Status == 429 || strings.HasPrefix(r.Path, "/v1/institutions/") {
			counted++
		}
	}
	t.Logf("%d requests, %d of them count", len(srv.Requests()), counted)
	if counted > requestsTold {
		t.Errorf("the kit asks %d times, and says %d at most", counted, requestsTold)
	}
}
