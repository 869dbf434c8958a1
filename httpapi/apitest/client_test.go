package apitest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/client"
)

// TestConfig_BaseURL: the URL of the node is understood with and without the path of the API, and ids are escaped.
func TestConfig_BaseURL(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"))
	for _, end := range []string{"", "/", "/v1", "/v1/"} {
		c, err := client.New(client.Config{BaseURL: srv.URL + end, HTTPClient: srv.Client})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Currencies(t.Context()); err != nil || c.BaseURL() != srv.URL {
			t.Errorf("%q: %v at %s", end, err, c.BaseURL())
		}
		for _, id := range []string{"no-such-bank", "../rates", "a b/ñ?", "."} {
			var refused *client.Error
			if _, err := c.Institution(t.Context(), id); !errors.As(err, &refused) || refused.Code != client.CodeInstitutionNotFound {
				t.Errorf("%q: %v", id, err)
			}
		}
		if _, err := c.History(t.Context(), client.HistoryQuery{From: "2026-02-31"}); err == nil || !strings.Contains(err.Error(), "from") {
			t.Errorf("a day that does not exist: %v", err)
		}
	}
}
