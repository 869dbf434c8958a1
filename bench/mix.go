//go:build linux

package main

import (
	"math/rand/v2"
	"strconv"
)

// Names of mixes. A mix is a set of requests; a load sends them at random.
const (
	mixBest         = "best"     // the usual request: the ten best places to buy dollars
	mixVarying      = "varying"  // mixBest with header fields that differ in each request, as trace IDs and cookies do
	mixProxied      = "proxied"  // mixVarying behind a proxy, which adds the client's address
	mixMatching     = "matching" // mixVarying with an ETag that matches: answered with 304
	mixFull         = "full"     // a complete ranking on one page
	mixGzip         = "gzip"     // mixFull, compressed
	mixConvert      = "convert"  // conversions of random amounts, which the node cannot cache
	mixConvertGzip  = "convert-gzip"
	mixRates        = "rates"
	mixHistory      = "history"
	mixCurrencies   = "currencies"
	mixInstitutions = "institutions"
	mixInstitution  = "institution"
	mixAll          = "all" // all operations, weighted by their estimated use
)

const (
	benchHost = "tasard.test" // Host header of requests
	// benchInstitution has rates and history in dollars.
	benchInstitution = "popular"
	// amountsMax is the number of possible random amounts. It is so large that a run hardly uses the same amount twice.
	amountsMax = 100_000_000_000

	bestPath    = "/v1/rates/best?currency=USD&operation=buy&limit=10"
	fullPath    = "/v1/rates/best?currency=USD&operation=buy&limit=200"
	convertPath = "/v1/convert?currency=USD&operation=buy&limit=10&amount="
	acceptGzip  = "Accept-Encoding: gzip, deflate\r\n"
)

// requestTemplate describes one kind of request in a mix.
type requestTemplate struct {
	weight       int    // relative frequency; 0 means 1
	path         string // path and query; if randomAmount is set, a random amount is appended
	randomAmount bool
	varies       bool   // the request has a trace ID and a cookie, which differ in each request
	proxied      bool   // the request has an X-Forwarded-For field, which differs in each request
	headers      string // further header fields, without Host and Authorization; each ends with CR LF
}

// mixes returns all mixes by name.
func mixes() map[string][]requestTemplate {
	one := func(t requestTemplate) []requestTemplate { return []requestTemplate{t} }
	table := map[string][]requestTemplate{
		mixBest:         one(requestTemplate{path: bestPath}),
		mixVarying:      one(requestTemplate{path: bestPath, varies: true}),
		mixProxied:      one(requestTemplate{path: bestPath, varies: true, proxied: true}),
		mixMatching:     one(requestTemplate{path: bestPath, varies: true, headers: "If-None-Match: *\r\n"}),
		mixFull:         one(requestTemplate{path: fullPath, varies: true}),
		mixGzip:         one(requestTemplate{path: fullPath, varies: true, headers: acceptGzip}),
		mixConvert:      one(requestTemplate{path: convertPath, randomAmount: true, varies: true}),
		mixConvertGzip:  one(requestTemplate{path: convertPath, randomAmount: true, varies: true, headers: acceptGzip}),
		mixRates:        one(requestTemplate{path: "/v1/rates?currency=USD&limit=20", varies: true}),
		mixHistory:      one(requestTemplate{path: "/v1/rates/history?currency=USD&institution=" + benchInstitution + "&limit=30", varies: true}),
		mixCurrencies:   one(requestTemplate{path: "/v1/currencies", varies: true}),
		mixInstitutions: one(requestTemplate{path: "/v1/institutions?limit=50", varies: true}),
		mixInstitution:  one(requestTemplate{path: "/v1/institutions/" + benchInstitution, varies: true}),
	}
	for name, weight := range map[string]int{
		mixVarying: 50, mixConvert: 10, mixConvertGzip: 5, mixRates: 10, mixGzip: 6, mixInstitution: 6, mixHistory: 5, mixCurrencies: 4,
		mixFull: 2, mixInstitutions: 2,
	} {
		t := table[name][0]
		t.weight = weight
		table[mixAll] = append(table[mixAll], t)
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
	inTurn      bool     // use one key after the other instead of drawing them
	sent        int
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

// Next appends the next request. It allocates nothing, so that the garbage collector does not disturb a measurement.
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
	if q.varies {
		id := random.Uint64() | 1<<63 // always 16 digits
		dst = append(strconv.AppendUint(append(dst, "User-Agent: bench/1\r\nAccept: */*\r\nTraceparent: 00-"...), id, 16), "\r\nCookie: visit="...)
		dst = append(strconv.AppendUint(dst, id, 36), "\r\n"...)
	}
	if q.proxied {
		dst = append(strconv.AppendUint(append(dst, "X-Forwarded-For: 203.0.113."...), random.Uint64N(256), 10), "\r\n"...)
	}
	key := m.sent % len(m.lastHeaders)
	if !m.inTurn {
		key = random.IntN(len(m.lastHeaders))
	}
	m.sent++
	return append(dst, m.lastHeaders[key]...)
}
