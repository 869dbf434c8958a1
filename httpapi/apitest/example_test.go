package apitest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/client"
)

const bestForBuyers = "/v1/rates/best?currency=USD&operation=buy"

func ask(client *http.Client, url string) (summary string, err error) {
	res, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	var body struct {
		Data  []struct{ InstitutionName, Sell string }
		Error struct{ Code string }
	}
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		return "", err
	}
	switch {
	case body.Error.Code != "":
		return fmt.Sprintf("%d %s, Retry-After %q", res.StatusCode, body.Error.Code, res.Header.Get("Retry-After")), nil
	case len(body.Data) == 0:
		return "nothing", nil
	}
	return fmt.Sprintf("%s at %s", body.Data[0].InstitutionName, body.Data[0].Sell), nil
}

// open starts a node, for the examples below.
func open(options ...apitest.Option) *apitest.Node {
	node, err := apitest.Open(options...)
	if err != nil {
		panic(err)
	}
	return node
}

// A program opens and closes a node; in a test Start does both. (Here open is apitest.Open, and panics on an error.)
func Example() {
	node := open(apitest.Seed("standard"))
	best, err := ask(node.Client, node.URL+bestForBuyers)
	fmt.Println(best, err)

	node.Clock.Advance(26 * time.Hour) // now every rate has expired
	best, err = ask(node.Client, node.URL+bestForBuyers)
	fmt.Println(best, err)

	fmt.Println(node.Close()) // nil: the log reproduces the state of the node
	// Output:
	// Cooperativa del Sur at 58.90 <nil>
	// nothing <nil>
	// <nil>
}

// An institution publishes a better rate.
func ExampleServer_Publish() {
	node := open(apitest.Rates(
		apitest.Rate{Institution: "popular", Currency: "USD", Buy: "58.20", Sell: "59.40"},
	))
	fmt.Println(ask(node.Client, node.URL+bestForBuyers))
	fmt.Println(node.Do(func(s *apitest.Server) {
		s.Publish(apitest.Rate{Institution: "bhd", Currency: "USD", Buy: "58.50", Sell: "59.30"})
	}))
	fmt.Println(ask(node.Client, node.URL+bestForBuyers))
	fmt.Println(node.Close())
	// Output:
	// Banco Popular Dominicano at 59.40 <nil>
	// <nil>
	// Banco Múltiple BHD at 59.30 <nil>
	// <nil>
}

// The next request is answered 503, as by a node without data; the one after it is answered as usual.
func ExampleServer_Fault() {
	node := open(apitest.Seed("standard"))
	fmt.Println(node.Do(func(s *apitest.Server) {
		s.Fault(apitest.Fault{Route: "/v1/rates/best", Status: http.StatusServiceUnavailable, RetryAfter: 5 * time.Second, Times: 1})
	}))
	for range 2 {
		fmt.Println(ask(node.Client, node.URL+bestForBuyers))
	}
	fmt.Println(node.Close())
	// Output:
	// <nil>
	// 503 data_unavailable, Retry-After "5" <nil>
	// Cooperativa del Sur at 58.90 <nil>
	// <nil>
}

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
