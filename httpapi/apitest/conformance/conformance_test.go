package conformance_test

import (
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
