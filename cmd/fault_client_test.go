//go:build faults

package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/apitest"
)

// unsent reports that a request without an answer was never sent: nothing was listening.
func (a *answer) unsent() bool { return a.status == 0 && a.sent.Load() == 0 }

// resends is how often the request was sent before the answered attempt: each may have been executed.
func (a *answer) resends() int { return max(0, int(a.sent.Load())-1) }

// failure describes an unwanted answer, with the error of do if there was one.
func (a *answer) failure(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: status %d: %.500s", what, a.status, a.body)
}

// decode decodes the body of a good answer.
func (a *answer) decode(value any) error {
	if !a.good() {
		return fmt.Errorf("status %d: %s", a.status, a.body)
	}
	return json.Unmarshal([]byte(a.body), value)
}

// window is one rate limit from the headers.
type window struct {
	limit, remaining int
	reset            int64 // X-RateLimit: epoch seconds; RateLimit: seconds from now
}

// rateLimit parses the X-RateLimit headers; false without them.
func (a *answer) rateLimit() (window, bool) {
	limit, missing := strconv.Atoi(a.header.Get("X-RateLimit-Limit"))
	remaining, wrong := strconv.Atoi(a.header.Get("X-RateLimit-Remaining"))
	reset, bad := strconv.ParseInt(a.header.Get("X-RateLimit-Reset"), 10, 64)
	return window{limit, remaining, reset}, missing == nil && wrong == nil && bad == nil
}

// codeTimeout is how long a login code may take to arrive.
const codeTimeout = 10 * time.Second

// askCode requests a login code and waits for its email; "" if none arrives. A client address may request 30 codes an
// hour and an e-mail address one a minute, so many clients need several addresses: see clientAddress.
func (p *mailServer) askCode(c *httpClient, url, email string) (string, answer, error) {
	got, err := c.do(http.MethodPost, url+"/v1/account/codes", "", map[string]string{"email": email})
	if err != nil || !got.good() {
		return "", got, err
	}
	mail, _ := p.Receive(email, codeTimeout)
	return mail.Code(), got, nil
}

// openSession tries a code at a node and returns the session token, "" if it is rejected.
func openSession(c *httpClient, url, email, code string) (string, answer, error) {
	got, err := c.do(http.MethodPost, url+"/v1/account/sessions", "", map[string]string{"email": email, "code": code})
	if err != nil || !got.good() {
		return "", got, err
	}
	var opened struct{ Data struct{ Token string } }
	err = got.decode(&opened)
	return opened.Data.Token, got, err
}

// session logs in at a node, which creates the account the first time, and returns the token.
func (p *mailServer) session(c *httpClient, url, email string) (string, error) {
	code, got, err := p.askCode(c, url, email)
	if code == "" {
		return "", got.failure("ask a code for "+email, err)
	}
	token, got, err := openSession(c, url, email, code)
	if token == "" {
		return "", got.failure("log in as "+email, err)
	}
	return token, nil
}

// clientAddress is the source address of client n: 25 share one.
func clientAddress(n int) string { return fmt.Sprintf("127.0.%d.%d", 1+n/25/250, 1+n/25%250) }

// createdKey is a key in the response to its creation.
type createdKey struct{ ID, Secret string }

// createKey creates a key in a session.
func createKey(c *httpClient, url, session, name string) (createdKey, answer, error) {
	got, err := c.do(http.MethodPost, url+"/v1/account/keys", session, map[string]string{"name": name})
	if err != nil || !got.good() {
		return createdKey{}, got, err
	}
	var made struct{ Data createdKey }
	return made.Data, got, got.decode(&made)
}

// revokeKey revokes a key.
func revokeKey(c *httpClient, url, session, id string) (answer, error) {
	return c.do(http.MethodDelete, url+"/v1/account/keys/"+id, session, nil)
}

// writeDataDir writes a data directory with rates and accounts with one key each, and returns the keys.
func writeDataDir(t *testing.T, dir string, accounts int, options ...apitest.Option) (keys []string) {
	t.Helper()
	writeState(t, dir, func(s *apitest.Server) {
		s.Publish(market()...)
		keys = s.Keys(accounts)
	}, options...)
	return keys
}

// writeState writes a data directory with what fill does to a new node.
func writeState(t *testing.T, dir string, fill func(s *apitest.Server), options ...apitest.Option) {
	t.Helper()
	harness, err := apitest.Open(append([]apitest.Option{apitest.FollowClock(time.Now), apitest.Lenient()}, options...)...)
	noError(t, err)
	var state *apitest.State
	made := harness.Do(func(s *apitest.Server) {
		fill(s)
		state = s.Snapshot()
	})
	noError(t, errors.Join(made, harness.Close()))
	noError(t, state.Write(dir))
}

// market returns a rate of every institution that sells dollars and euros.
func market() []apitest.Rate {
	var rates []apitest.Rate
	for i, institution := range engine.DefaultCatalogue().Institutions() {
		if !institution.Active || institution.Type == engine.Official {
			continue
		}
		text := func(hundredths int) string { return fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100) }
		rates = append(rates,
			apitest.Rate{Institution: institution.ID, Currency: "USD", Buy: text(5800 + i), Sell: text(5900 + i)},
			apitest.Rate{Institution: institution.ID, Currency: "EUR", Buy: text(6700 + i), Sell: text(6900 + i)})
	}
	return rates
}
