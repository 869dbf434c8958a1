//go:build linux

package main

import (
	"math/rand/v2"
	"strconv"
)

// Names of mixes; those of one operation have its name in reports.
const (
	mixBest         = "best"    // the usual request: the ten best places to buy dollars
	mixFull         = "full"    // a complete ranking on one page
	mixGzip         = "gzip"    // the same, compressed
	mixConvert      = "convert" // with an amount that was not requested before
	mixRates        = "rates"
	mixHistory      = "history"
	mixCurrencies   = "currencies"
	mixInstitutions = "institutions"
	mixInstitution  = "institution"
	mixAll          = "all" // all of them, weighted as users send them
)

const (
	// benchHost is the Host of requests.
	benchHost = "tasard.test"
	// benchInstitution has rates and history in dollars.
	benchInstitution = "popular"
	// amountsMax is the number of amounts, in cents: hardly one is drawn twice in a run.
	amountsMax = 100_000_000_000
)

// requestTemplate describes one kind of request in a mix.
type requestTemplate struct {
	operation    string
	weight       int    // relative frequency
	path         string // request target; a random amount is appended if randomAmount is set
	randomAmount bool
	headers      string // besides Host and Authorization, each with CR LF
}

// mixes returns each operation as a mix of its own, and all of them together.
func mixes() map[string][]requestTemplate {
	all := []requestTemplate{
		{operation: mixBest, weight: 50, path: "/v1/rates/best?currency=USD&operation=buy&limit=10"},
		{operation: mixConvert, weight: 15, path: "/v1/convert?currency=USD&operation=buy&limit=10&amount=", randomAmount: true},
		{operation: mixRates, weight: 10, path: "/v1/rates?currency=USD&limit=20"},
		{operation: mixGzip, weight: 6, path: "/v1/rates/best?currency=USD&operation=buy&limit=200", headers: "Accept-Encoding: gzip\r\n"},
		{operation: mixInstitution, weight: 6, path: "/v1/institutions/" + benchInstitution},
		{operation: mixHistory, weight: 5, path: "/v1/rates/history?currency=USD&institution=" + benchInstitution + "&limit=30"},
		{operation: mixCurrencies, weight: 4, path: "/v1/currencies"},
		{operation: mixFull, weight: 2, path: "/v1/rates/best?currency=USD&operation=buy&limit=200"},
		{operation: mixInstitutions, weight: 2, path: "/v1/institutions?limit=50"},
	}
	table := map[string][]requestTemplate{mixAll: all}
	for _, q := range all {
		table[q.operation] = []requestTemplate{q}
	}
	return table
}

// request returns one request as sent on the wire. key may be "".
func (q *requestTemplate) request(key string) []byte {
	one := newMix(benchHost, nil, []requestTemplate{*q})
	if key != "" {
		one.endings = []string{authorization(key)}
	}
	return one.next(nil, rand.New(rand.NewPCG(0, 0)))
}

// authorization returns the end of a request with a key.
func authorization(key string) string { return "Authorization: Bearer " + key + "\r\n\r\n" }

// requestSource makes the requests of clients, one after the other.
type requestSource interface {
	// next appends a request as sent on the wire.
	next(dst []byte, random *rand.Rand) []byte
}

// mix draws weighted templates, with the keys of many accounts.
type mix struct {
	templates []requestTemplate // path and headers are complete parts of a request
	total     int               // of all weights
	endings   []string          // of requests: Authorization and the empty line
}

// newMix makes a mix for a host. Keys are drawn evenly; without keys requests have none.
func newMix(host string, keys []string, questions []requestTemplate) *mix {
	m := &mix{}
	for _, q := range questions {
		q.path, q.headers, q.weight = "GET "+q.path, " HTTP/1.1\r\nHost: "+host+"\r\n"+q.headers, max(1, q.weight)
		m.total += q.weight
		m.templates = append(m.templates, q)
	}
	for _, key := range keys {
		m.endings = append(m.endings, authorization(key))
	}
	if len(m.endings) == 0 {
		m.endings = []string{"\r\n"}
	}
	return m
}

func (m *mix) next(dst []byte, random *rand.Rand) []byte {
	part, drawn := 0, random.IntN(m.total)
	for ; drawn >= m.templates[part].weight; part++ {
		drawn -= m.templates[part].weight
	}
	q := &m.templates[part]
	dst = append(dst, q.path...)
	if q.randomAmount {
		cents := 100 + random.Uint64N(amountsMax)
		dst = append(strconv.AppendUint(dst, cents/100, 10), '.', byte('0'+cents/10%10), byte('0'+cents%10))
	}
	dst = append(dst, q.headers...)
	return append(dst, m.endings[random.IntN(len(m.endings))]...)
}

// perAccount sends the same request for one account after the other.
type perAccount struct {
	keys []string
	mix  *mix
	sent int
}

func (r *perAccount) next(dst []byte, random *rand.Rand) []byte {
	r.mix.endings = []string{authorization(r.keys[r.sent%len(r.keys)])}
	r.sent++
	return r.mix.next(dst, random)
}
