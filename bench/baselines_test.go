//go:build faults && linux

package main

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"testing"
)

// nodeOf starts a node on a small fixture, to compare nginx and PostgreSQL with.
func nodeOf(t *testing.T) (*server, string) {
	t.Helper()
	f, err := newFixture(t.TempDir(), fixtureSize{institutions: 44, currencies: 8, accounts: 1, days: 1})
	if err != nil {
		t.Fatal(err)
	}
	return wantStarted(t)(startNode(t.Context(), []string{buildNode(t, "")}, f, -1)), f.keys[0]
}

// TestFaultsF6_Nginx checks that nginx sends the node's body, with its type and encoding.
func TestFaultsF6_Nginx(t *testing.T) {
	node, key := nodeOf(t)
	for mix, tuned := range map[string]bool{mixBestRates: false, mixGzip: true} {
		q := &mixes()[mix][0]
		nginx := wantStarted(t)(startNginx(t.Context(), node, key, q, tuned, -1))
		_, want, wantErr := node.capture(t.Context(), key, q)
		_, got, err := nginx.capture(t.Context(), "", q)
		if err != nil || wantErr != nil {
			t.Fatal(err, wantErr)
		}
		for _, name := range []string{"Content-Type", "Content-Encoding"} {
			if !bytes.Equal(got.Header.Peek(name), want.Header.Peek(name)) || !bytes.Equal(got.Body(), want.Body()) {
				t.Errorf("%s: another %s or body than the node's: %s, %.300s", mix, name, got.Header.Peek(name), got.Body())
			}
		}
		wantBusy(t, nginx, "")
		wantStopped(t, nginx)
	}
}

// TestFaultsF15_Cache checks that nginx answers from its cache what it has asked the node for.
func TestFaultsF15_Cache(t *testing.T) {
	f, err := newFixture(t.TempDir(), fixtureSize{institutions: 44, currencies: 8, accounts: 1, days: 1})
	if err != nil {
		t.Fatal(err)
	}
	node := wantStarted(t)(startNode(t.Context(), []string{buildNode(t, "")}, f, -1, "--limits=off"))
	cache := wantStarted(t)(startNginxCache(t.Context(), node, -1))
	before, beforeErr := node.metric(t.Context(), requestsMetric)
	for range 20 {
		if answer := get(t, cache, "", mixes()[mixFull][0].path); answer.StatusCode() != 200 {
			t.Fatal(answer.StatusCode())
		}
	}
	if after, err := node.metric(t.Context(), requestsMetric); errors.Join(err, beforeErr) != nil || after != before+1 {
		t.Errorf("20 requests to the cache are %v to the node: %v, %v", after-before, err, beforeErr)
	}
	wantStopped(t, cache)
	wantStopped(t, node)
}

// TestFaultsF7_Postgres checks that PostgreSQL's answers are the node's.
func TestFaultsF7_Postgres(t *testing.T) {
	node, key := nodeOf(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	postgres := wantStarted(t)(startPostgres(t.Context(), self, node, key, -1))
	withoutTime := func(body []byte) string {
		return regexp.MustCompile(`"generatedAt":"[^"]*"`).ReplaceAllString(string(body), "")
	}
	for _, path := range []string{
		mixes()[mixBestRates][0].path, mixes()[mixFull][0].path, "/v1/rates/best?currency=EUR&operation=buy&limit=7", "/v1/rates/best?currency=NOK&operation=buy&limit=7",
	} {
		want, got := get(t, node, key, path), get(t, postgres, key, path)
		if got.StatusCode() != 200 || withoutTime(got.Body()) != withoutTime(want.Body()) {
			t.Errorf("%s: %d and another answer than the node's:\n%.2000s\nthe node:\n%.2000s", path, got.StatusCode(), got.Body(), want.Body())
		}
	}
	if got := get(t, postgres, key, "/v1/rates/best?operation=sell"); got.StatusCode() != 400 {
		t.Errorf("what it can't answer is %d", got.StatusCode())
	}
	wantBusy(t, postgres, key)
	wantStopped(t, postgres)
}
