//go:build linux

package main

import (
	"math/rand/v2"
	"strconv"
)

// Names of mixes; those of one operation are its name in reports.
const (
	mixBest         = "best"    // what is asked most: the ten best places to buy dollars
	mixFull         = "full"    // a whole ranking on one page
	mixGzip         = "gzip"    // the same, compressed
	mixConvert      = "convert" // an amount that was not asked for before
	mixRates        = "rates"
	mixHistory      = "history"
	mixCurrencies   = "currencies"
	mixInstitutions = "institutions"
	mixInstitution  = "institution"
	mixAll          = "all" // as users ask them, together
)

const (
	// benchHost is the host that requests name.
	benchHost = "tasard.test"
	// benchInstitution is one with rates and history in dollars.
	benchInstitution = "popular"
	// amountsMax is how many amounts there are, in cents: so many that hardly one is drawn twice within a run.
	amountsMax = 100_000_000_000
)

// requestTemplate is a kind of request of a mix.
type requestTemplate struct {
	operation    string
	weight       int    // how often it is asked among the others
	path         string // the request target. With amounts an amount is appended to it, another one each time
	randomAmount bool
	headers      string // headers besides Host and Authorization, each with its CR LF
}

// mixes are the operations as users ask them, each alone, and all of them by how often they are asked.
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

// request is the question as it goes over the wire, once. key may be "".
func (q *requestTemplate) request(key string) []byte {
	one := newMix(benchHost, nil, []requestTemplate{*q})
	if key != "" {
		one.endings = []string{authorization(key)}
	}
	return one.next(nil, rand.New(rand.NewPCG(0, 0)))
}

// authorization is how a request with a key ends.
func authorization(key string) string { return "Authorization: Bearer " + key + "\r\n\r\n" }

// requestSource makes the requests of one load, one after the other.
type requestSource interface {
	// next appends the next request as it goes over the wire.
	next(dst []byte, random *rand.Rand) []byte
}

// mix asks a weighted choice of questions, in the names of many accounts.
type mix struct {
	templates []requestTemplate // path and lines are the pieces of a request, without its end
	total     int               // of all weights
	endings   []string          // how a request ends: its Authorization, and the empty line
}

// newMix makes the mix of questions for a host. Each request has a key of keys, drawn evenly; without keys none has one.
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

// perAccount asks the same in the name of one account after the other.
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
