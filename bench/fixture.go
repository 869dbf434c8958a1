//go:build linux

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/apitest"
)

// fixtureSeed makes the rates the same in each run, except for their dates. fixtureDays is the number of days of rates
// before today.
const fixtureSeed, fixtureDays = 20, 30

// fixture is a data directory for a node: with the simulated market of the demo, and accounts with one API key each.
type fixture struct {
	dir         string            // the data directory; a node that uses it changes its contents
	keys        []string          // one API key for each account
	certificate *certificate      // of the node; nil if it serves plain HTTP
	market      *simulated.Market // as it was when the fixture was made
}

// certificate is a certificate for the loopback address.
type certificate struct {
	file, key string      // paths of the PEM files with the certificate and its key
	client    *tls.Config // configuration of a client that trusts the certificate
}

// newCertificate writes the certificate of package httptest and its key into the directory dir.
func newCertificate(dir string) (*certificate, error) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		return nil, err
	}
	c := &certificate{file: filepath.Join(dir, "tls.pem"), key: filepath.Join(dir, "tls.key")}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c.client = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
	return c, errors.Join(
		os.WriteFile(c.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600),
		os.WriteFile(c.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}

// newFixture creates the data in dir, which must be new or empty.
func newFixture(dir string, accounts int) (*fixture, error) {
	f := &fixture{dir: filepath.Join(dir, "data"), market: simulated.NewMarket(fixtureSeed)}
	node, err := apitest.Open(apitest.FollowClock(time.Now), apitest.Lenient())
	if err != nil {
		return nil, fmt.Errorf("make the data of a node: %w", err)
	}
	var state *apitest.State
	err = node.Do(func(s *apitest.Server) {
		today := engine.DateOf(time.Now())
		s.Observe(asReal(f.market.History(today-fixtureDays, today-1))...)
		s.Observe(asReal(f.market.Refreshes(time.Now()))...)
		f.keys, state = s.Keys(accounts), s.Snapshot()
	})
	if err = errors.Join(err, node.Close()); err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o700), state.Write(f.dir))
	}
	if err != nil {
		return nil, fmt.Errorf("make the data of a node: %w", err)
	}
	return f, nil
}

// asReal renames the sources of made-up rates to those that they stand for. A node would refuse the others.
func asReal(list []engine.Refresh) []engine.Refresh {
	for i := range list {
		list[i].SourceID = strings.TrimPrefix(list[i].SourceID, "demo-")
	}
	return list
}

// writeRefresh writes the next step of the market as an observations file, for tasard import.
func (f *fixture) writeRefresh(path string) error {
	text := []byte("observedAt,institutionId,currency,channel,kind,buy,sell,sourceId,effectiveDate,publishedAt\n")
	for _, refresh := range asReal(f.market.Refreshes(time.Now())) {
		for _, o := range refresh.Observations {
			text = fmt.Appendf(text, "%s,%s,%s,%s,%s,%s,%s,%s,,\n", refresh.ObservedAt.UTC().Format(time.RFC3339), o.InstitutionID, o.Currency, o.Channel, o.Kind, o.Buy, o.Sell, refresh.SourceID)
		}
	}
	return os.WriteFile(path, text, 0o600)
}
