package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
)

// Every request is counted. Clients choose paths and methods, so labels are only from fixed lists, and no metric stores
// a part of a request.

// routeID identifies the route under which a request is counted.
type routeID uint8

// Routes of requests without an operation.
const (
	routeRefused   routeID = iota // malformed: rejected before the router was called
	routeUnmatched                // neither an operation nor a page has the path
	routeAsterisk                 // OPTIONS *
	routeSite                     // pages and documents
)

// routeNames returns the values of the label route.
func routeNames() []string {
	names := []string{"refused", "none", "*", "site"}
	for _, r := range routes() {
		names = append(names, r.pattern)
	}
	for _, op := range accountOperations() {
		if !slices.Contains(names, op.pattern) {
			names = append(names, op.pattern)
		}
	}
	return append(names, livezPath, healthzPath, readyzPath)
}

// labelOther is the label of methods and statuses that are not counted separately.
const labelOther = "other"

// methodLabel returns the label of a method.
func methodLabel(method []byte) string {
	for _, known := range [...]string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodDelete, fasthttp.MethodOptions} {
		if string(method) == known {
			return known
		}
	}
	return labelOther
}

func statusLabel(status int) string {
	if http.StatusText(status) == "" {
		return labelOther
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

// admissionOutcomes returns the values of the label outcome: all results of Config.Admitter.
func admissionOutcomes() []string {
	outcomes := []string{admitted, unavailable}
	for _, code := range []engine.Code{
		engine.CodeRateLimited, engine.CodeQuotaExceeded, engine.CodeMissingKey, engine.CodeInvalidKey, engine.CodeRevokedKey, engine.CodeAccountSuspended,
	} {
		outcomes = append(outcomes, string(code))
	}
	return outcomes
}

// counters are the metrics of a server. Those that nearly all requests change are bound to their labels at the start:
// to find a metric by its labels takes longer than to change it.
type counters struct {
	requests, errors, admissions *prometheus.CounterVec
	durations                    *prometheus.HistogramVec
	admittedKey, admittedOther   prometheus.Counter // admissions, with a key and without
	routes                       []routeCounters    // by routeID
	routeIDs                     map[string]routeID
	conns                        conn.Counts
}

// routeCounters are the bound metrics of a route.
type routeCounters struct {
	name              string
	got, gotUnchanged prometheus.Counter // GET requests answered 200 and 304
	durations         prometheus.Observer
}

func newCounters() *counters {
	c := &counters{
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
		routeIDs: map[string]routeID{},
	}
	for i, name := range routeNames() {
		of := func(status int) prometheus.Counter {
			return c.requests.WithLabelValues(name, fasthttp.MethodGet, statusLabel(status))
		}
		c.routes = append(c.routes, routeCounters{name, of(fasthttp.StatusOK), of(fasthttp.StatusNotModified), c.durations.WithLabelValues(name)})
		c.routeIDs[name] = routeID(i)
	}
	for _, hasKey := range []bool{false, true} {
		for _, outcome := range admissionOutcomes() {
			c.admissions.WithLabelValues(callerLabel(hasKey), outcome)
		}
	}
	c.admittedKey, c.admittedOther = c.admissions.WithLabelValues(callerLabel(true), admitted), c.admissions.WithLabelValues(callerLabel(false), admitted)
	for _, known := range codes() {
		c.errors.WithLabelValues(string(known.code))
	}
	return c
}

// countAnswer counts a response that took this long since the request was complete. The time counts only for
// connections of a conn.Listener.
func (c *counters) countAnswer(a *requestState, elapsed time.Duration, method []byte, status int) {
	route := &c.routes[a.route]
	if a.conn != nil {
		route.durations.Observe(max(0, elapsed).Seconds())
	}
	switch {
	case string(method) == fasthttp.MethodGet && status == fasthttp.StatusOK:
		route.got.Inc()
	case string(method) == fasthttp.MethodGet && status == fasthttp.StatusNotModified:
		route.gotUnchanged.Inc()
	default:
		c.requests.WithLabelValues(route.name, methodLabel(method), statusLabel(status)).Inc()
	}
}

// countAdmission counts a result of Config.Admitter, which checks keys and quotas. code is "" if the request was
// admitted. A code that is not in admissionOutcomes counts as unavailable.
func (c *counters) countAdmission(hasKey bool, code engine.Code) {
	outcome := string(code)
	switch {
	case code == "" && hasKey:
		c.admittedKey.Inc()
		return
	case code == "":
		c.admittedOther.Inc()
		return
	case !slices.Contains(admissionOutcomes(), outcome):
		outcome = unavailable
	}
	c.admissions.WithLabelValues(callerLabel(hasKey), outcome).Inc()
}

// collectors returns the metrics. connsMax is Limits.ConnsMax.
func (c *counters) collectors(connsMax int) []prometheus.Collector {
	all := []prometheus.Collector{c.requests, c.errors, c.admissions, c.durations}
	gauge := func(name, help string, value func() float64) {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	counter := func(name, help string, labels prometheus.Labels, value interface{ Load() uint64 }) {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return float64(value.Load()) }))
	}
	gauge("tasard_http_connections", "Open connections.", func() float64 { return float64(c.conns.Open.Load()) })
	gauge("tasard_http_connections_max", "Maximum of open connections.", func() float64 { return float64(connsMax) })
	counter("tasard_http_connections_accepted_total", "Accepted connections, including those refused afterwards.", nil, &c.conns.Accepted)
	counter("tasard_http_connections_refused_total", "Refused connections: their address had reached its limit.",
		prometheus.Labels{"reason": "address"}, &c.conns.OverClientLimit)
	counter("tasard_http_connections_idle_closed_total", "Idle connections that were closed at the maximum for new ones.", nil, &c.conns.IdleClosed)
	counter("tasard_http_accept_failures_total", "Failures to accept a connection for lack of descriptors or memory.", nil, &c.conns.Shortages)
	return all
}
