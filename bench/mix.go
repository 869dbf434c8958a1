//go:build linux

package main

import (
	"math/rand/v2"
	"strconv"
)

// Names of mixes. A mix is a set of requests; a load sends them at random. A mix with only one operation of the API has
// the name of the operation.
const (
	mixBestRates    = "best"    // the usual request: the ten best places to buy dollars
	mixFull         = "full"    // a complete ranking on one page
	mixGzip         = "gzip"    // mixFull, compressed
	mixConvert      = "convert" // with random amounts, which the node cannot cache
	mixRates        = "rates"
	mixHistory      = "history"
	mixCurrencies   = "currencies"
	mixInstitutions = "institutions"
	mixInstitution  = "institution"
	mixAll          = "all" // all operations, weighted by their estimated use
)

const (
	// benchHost is the Host header of requests.
	benchHost = "tasard.test"
	// benchInstitution has rates and history in dollars.
	benchInstitution = "popular"
	// amountsMax is the number of possible random amounts. It is so large that a run hardly uses the same amount twice.
	amountsMax = 100_000_000_000
)

// requestTemplate describes one kind of request in a mix.
type requestTemplate struct {
	operation    string
	weight       int    // relative frequency
	path         string // path and query; if randomAmount is true, a random amount is appended
	randomAmount bool
	headers      string // further header fields, without Host and Authorization; each ends with CR LF
}

// mixes returns all mixes by name: one for each operation, and mixAll.
func mixes() map[string][]requestTemplate {
	all := []requestTemplate{
		{operation: mixBestRates, weight: 50, path: "/v1/rates/best?currency=USD&operation=buy&limit=10"},
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

// request returns one HTTP request with an API key. If key is "", the request has none.
func (q *requestTemplate) request(key string) []byte {
	m := newMix(benchHost, nil, []requestTemplate{*q})
	if key != "" {
		m.lastHeaders = []string{authorization(key)}
	}
	return m.Next(nil, rand.New(rand.NewPCG(0, 0)))
}

// authorization returns the Authorization header and the empty line that ends a request.
func authorization(key string) string { return "Authorization: Bearer " + key + "\r\n\r\n" }

// mix generates random requests. For each request it draws a template, according to the weights, and an API key.
type mix struct {
	templates   []requestTemplate // as newMix has changed them: path is the start of the request line, headers is the rest
	totalWeight int
	lastHeaders []string // for each key the end of a request: Authorization header and empty line
}

// newMix returns a mix of requests to a host. All keys are equally likely. Without keys the requests have no
// Authorization header.
func newMix(host string, keys []string, templates []requestTemplate) *mix {
	m := &mix{}
	for _, t := range templates {
		t.path, t.headers, t.weight = "GET "+t.path, " HTTP/1.1\r\nHost: "+host+"\r\n"+t.headers, max(1, t.weight)
		m.totalWeight += t.weight
		m.templates = append(m.templates, t)
	}
	for _, key := range keys {
		m.lastHeaders = append(m.lastHeaders, authorization(key))
	}
	if len(m.lastHeaders) == 0 {
		m.lastHeaders = []string{"\r\n"}
	}
	return m
}

func (m *mix) Next(dst []byte, random *rand.Rand) []byte {
	i, n := 0, random.IntN(m.totalWeight)
	for ; n >= m.templates[i].weight; i++ {
		n -= m.templates[i].weight
	}
	q := &m.templates[i]
	dst = append(dst, q.path...)
	if q.randomAmount {
		cents := 100 + random.Uint64N(amountsMax)
		dst = append(strconv.AppendUint(dst, cents/100, 10), '.', byte('0'+cents/10%10), byte('0'+cents%10))
	}
	dst = append(dst, q.headers...)
	return append(dst, m.lastHeaders[random.IntN(len(m.lastHeaders))]...)
}

// perAccount generates requests for ever. Each one has the key of the next account; otherwise they are the same.
type perAccount struct {
	keys []string
	mix  *mix
	sent int
}

func (r *perAccount) Next(dst []byte, random *rand.Rand) []byte {
	r.mix.lastHeaders = []string{authorization(r.keys[r.sent%len(r.keys)])}
	r.sent++
	return r.mix.Next(dst, random)
}
