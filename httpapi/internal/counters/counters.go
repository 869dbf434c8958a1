package counters

import (
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
)

// Other is the label of rare methods and statuses.
const Other = "other"

// MethodLabel returns the label of a method.
func MethodLabel(method []byte) string {
	for _, known := range [...]string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodDelete, fasthttp.MethodOptions} {
		if string(method) == known {
			return known
		}
	}
	return Other
}

func statusLabel(status int) string {
	if http.StatusText(status) == "" {
		return Other
	}
	return strconv.Itoa(status)
}

// callerLabel returns the value of the label caller of admissions.
func callerLabel(hasKey bool) string {
	if hasKey {
		return "key"
	}
	return "anonymous"
}

const (
	admitted    = "admitted"
	unavailable = "unavailable" // the admitter is overloaded, starting or stopping, or cannot write
)

// Outcomes returns the values of the label outcome: all possible results of the admitter.
func Outcomes() []string {
	outcomes := []string{admitted, unavailable}
	for _, code := range []engine.Code{
		engine.CodeRateLimited, engine.CodeQuotaExceeded, engine.CodeMissingKey, engine.CodeInvalidKey, engine.CodeRevokedKey, engine.CodeAccountSuspended,
	} {
		outcomes = append(outcomes, string(code))
	}
	return outcomes
}

// Counters contains the metrics of a server. It is safe for concurrent use. Metrics that change often are looked up by
// their labels only once, in New, because a lookup takes longer than the change.
type Counters struct {
	requests, errors, admissions *prometheus.CounterVec
	durations                    *prometheus.HistogramVec
	routes                       []routeCounters    // by route
	admittedKey, admittedOther   prometheus.Counter // admissions, with a key and without
	overMinute, overDay          atomic.Uint64      // requests refused because a quota was used up
}

// routeCounters contains the metrics of a route that change often.
type routeCounters struct {
	name              string
	got, gotUnchanged prometheus.Counter // GET requests answered 200 and 304
	durations         prometheus.Observer
}

// New returns metrics with the value zero. routes and codes (of errors) are the values of labels.
func New(routes []string, codes []engine.Code) *Counters {
	c := &Counters{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tasard_http_requests_total",
			Help: "Answers by route, method and status. Routes besides operations: site (pages), none (no route), * (OPTIONS *), refused (malformed)."},
			[]string{"route", "method", "status"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tasard_http_errors_total",
			Help: "Error answers by the code in their body."}, []string{"code"}),
		admissions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tasard_admissions_total",
			Help: "Admissions of data requests by outcome, while quotas or keys are enforced."}, []string{"caller", "outcome"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "tasard_http_request_duration_seconds",
			Help:    "From the complete request until its answer is ready to be sent.",
			Buckets: []float64{1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, .1, .2, .5, 1, 2, 5}}, []string{"route"}),
	}
	for _, name := range routes {
		of := func(status int) prometheus.Counter {
			return c.requests.WithLabelValues(name, fasthttp.MethodGet, statusLabel(status))
		}
		c.routes = append(c.routes, routeCounters{name, of(fasthttp.StatusOK), of(fasthttp.StatusNotModified), c.durations.WithLabelValues(name)})
	}
	for _, hasKey := range []bool{false, true} {
		for _, outcome := range Outcomes() {
			c.admissions.WithLabelValues(callerLabel(hasKey), outcome)
		}
	}
	c.admittedKey, c.admittedOther = c.admissions.WithLabelValues(callerLabel(true), admitted), c.admissions.WithLabelValues(callerLabel(false), admitted)
	for _, code := range codes {
		c.errors.WithLabelValues(string(code))
	}
	return c
}

// Answer counts a response. route is an index of New's routes. elapsed is the time since the whole request had been
// read; it is ignored unless timed is true.
func (c *Counters) Answer(route int, method []byte, status int, timed bool, elapsed time.Duration) {
	r := &c.routes[route]
	if timed {
		r.durations.Observe(max(0, elapsed).Seconds())
	}
	switch {
	case string(method) == fasthttp.MethodGet && status == fasthttp.StatusOK:
		r.got.Inc()
	case string(method) == fasthttp.MethodGet && status == fasthttp.StatusNotModified:
		r.gotUnchanged.Inc()
	default:
		c.requests.WithLabelValues(r.name, MethodLabel(method), statusLabel(status)).Inc()
	}
}

// Error counts an error response.
func (c *Counters) Error(code engine.Code) { c.errors.WithLabelValues(string(code)).Inc() }

// Admission counts a result of account.Admitter. code is "" for an admitted request. A code that is not in Outcomes
// counts as unavailable.
func (c *Counters) Admission(hasKey bool, code engine.Code) {
	outcome := string(code)
	switch {
	case code == "" && hasKey:
		c.admittedKey.Inc()
		return
	case code == "":
		c.admittedOther.Inc()
		return
	case code == engine.CodeRateLimited:
		c.overMinute.Add(1)
	case code == engine.CodeQuotaExceeded:
		c.overDay.Add(1)
	case !slices.Contains(Outcomes(), outcome):
		outcome = unavailable
	}
	c.admissions.WithLabelValues(callerLabel(hasKey), outcome).Inc()
}

// Refused returns the numbers of requests refused because the quota of a minute or of a day was used up.
func (c *Counters) Refused() (minute, day uint64) { return c.overMinute.Load(), c.overDay.Load() }

// Collectors returns the metrics, also of the connections. connsMax is the maximum number of open connections.
func (c *Counters) Collectors(conns *conn.Counts, connsMax int) []prometheus.Collector {
	all := []prometheus.Collector{c.requests, c.errors, c.admissions, c.durations}
	gauge := func(name, help string, value func() float64) {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	counter := func(name, help string, labels prometheus.Labels, value interface{ Load() uint64 }) {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return float64(value.Load()) }))
	}
	gauge("tasard_http_connections", "Open connections.", func() float64 { return float64(conns.Open.Load()) })
	gauge("tasard_http_connections_max", "Maximum of open connections.", func() float64 { return float64(connsMax) })
	counter("tasard_http_connections_accepted_total", "Accepted connections, including those refused afterwards.", nil, &conns.Accepted)
	counter("tasard_http_connections_refused_total", "Refused connections: their address had reached its limit.",
		prometheus.Labels{"reason": "address"}, &conns.OverClientLimit)
	counter("tasard_http_connections_idle_closed_total", "Idle connections that were closed at the maximum for new ones.", nil, &conns.IdleClosed)
	counter("tasard_http_accept_failures_total", "Failures to accept a connection for lack of descriptors or memory.", nil, &conns.Shortages)
	return all
}
