package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster"
	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi"
	"github.com/tasard/tasard/wal"
)

// stillFront has answered something of everything, each another number of times.
type stillFront struct{}

func (stillFront) Stats() httpapi.Stats {
	times := httpapi.RouteTimes{Route: "/v1/rates/best", Sum: 1500 * time.Microsecond}
	times.Counts[2], times.Counts[3], times.Counts[len(times.Counts)-1] = 5, 2, 1
	return httpapi.Stats{
		Requests:    []httpapi.RequestCount{{Route: "/v1/rates/best", Method: "GET", Status: 200, Count: 8}, {Route: "site", Method: "other", Status: 0, Count: 9}},
		Times:       []httpapi.RouteTimes{times},
		Errors:      []httpapi.CodeCount{{Code: engine.CodeOverloaded, Count: 10}},
		Admissions:  []httpapi.AdmissionCount{{Caller: "key", Outcome: "admitted", Count: 11}},
		Shed:        []httpapi.ShedCount{{Lane: "anonymous", Reason: "late", Count: 12}},
		Connections: httpapi.ConnectionCounts{Open: 13, Most: 14, Accepted: 15, Crowded: 16, Spare: 17, Short: 18},
	}
}

// stillSystem holds something of everything.
type stillSystem struct{ starting bool }

func (s stillSystem) Stats() actors.Stats {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	stats := actors.Stats{
		Serving: !s.starting, Accounts: 22, Living: 23, Leases: 24, Logged: true,
		Mailboxes:  []actors.MailboxStats{{Kind: "currency", Waiting: 19, Most: 20, Refused: 21}, {Kind: "account", Waiting: 25, Most: -1, Refused: 26}},
		Currencies: []actors.CurrencyStats{{Currency: "USD", CheckedAt: at(27), FreshUntil: at(28)}, {Currency: "EUR"}},
		Log: wal.Stats{
			First: 29, Last: 30, Segments: 31, LogBytes: 32, Snapshots: 33, SnapshotBytes: 34, SnapshotSequence: 35, SnapshotAt: at(36), Batches: 37, Records: 38, Bytes: 39,
			Syncs: wal.SyncTimes{Sum: 40 * time.Millisecond},
		},
	}
	stats.Log.Syncs.Counts[0], stats.Log.Syncs.Counts[4] = 41, 42
	return stats
}

func (stillSystem) Currencies() (*engine.Page[engine.CurrencyItem], error) {
	item := engine.CurrencyItem{QuoteCount: 50, CurrentQuoteCount: 43}
	item.Code = "USD"
	return &engine.Page[engine.CurrencyItem]{Items: []engine.CurrencyItem{item}}, nil
}

func (stillSystem) Transition() engine.Transition {
	return engine.Transition{AnnouncedAt: time.Unix(1, 0), RequiredAt: time.Unix(44, 0)}
}

// stillHealth is degraded.
type stillHealth struct{}

func (stillHealth) Conditions() []engine.Condition {
	return []engine.Condition{engine.Well("log"), {Name: "disk", State: "slow", Detail: "slow"}}
}
func (stillHealth) log() shownLog { return shownLog{Failure: "secret cause"} }
func (stillHealth) mail() *mail.Stats {
	return &mail.Stats{Waiting: 45, Sent: 46, Refused: 47, Exhausted: 48, Expired: 49, Replaced: 51, Abandoned: 52, Overflown: 53, Failures: 54}
}

// stillCluster is a cluster of three nodes of which one is gone.
type stillCluster struct{}

func (stillCluster) Status() cluster.Status {
	return cluster.Status{
		Cluster: "rates", Standing: actors.Standing{Majority: true, Since: time.Unix(61, 0), Leader: "node-2"},
		Nodes: []cluster.NodeStatus{
			{Name: "node-1", Node: 1, Address: "10.0.0.1:6222", Self: true, Member: true, Last: 62, Lag: 1},
			{Name: "node-2", Node: 2, Address: "10.0.0.2:6222", Member: true, Reachable: true, Leader: true, Current: true, Last: 63},
			{Name: "node-3", Address: "10.0.0.3:6222", Member: true, Lag: 63},
		},
	}
}

// watchedManagement is a management listener with something of everything to tell.
func watchedManagement() *management {
	m := managementOf(&stillNode{})
	m.health, m.front, m.system, m.cluster = stillHealth{}, stillFront{}, stillSystem{}, stillCluster{}
	m.certificates = []shownCertificate{
		{shownToClients, func() time.Time { return time.Unix(64, 0) }}, {shownToNodes, func() time.Time { return time.Unix(65, 0) }},
	}
	return m
}

// everything is all that a node can tell: that of a management listener, and a source that was tried.
func everything(m *management) prometheus.Gatherer {
	sources := prometheus.NewRegistry()
	sources.MustRegister(newSourceMetrics(func() []collectors.Health {
		return []collectors.Health{{SourceID: "never"}, {
			SourceID: "popular-site", State: collectors.Partial, Runs: 1, LastSuccess: time.Unix(55, 0), ConsecutiveFailures: 56,
			Failures: map[source.FailureKind]uint64{"empty": 57}, Tally: collectors.Tally{Accepted: 58, Held: 59, Repeated: 60},
		}}
	}))
	return prometheus.Gatherers{m.registry(), sources}
}

// scraped is what Prometheus gets.
func scraped(t *testing.T, m *management) string {
	t.Helper()
	return askManagement(t, m, "GET", metricsPath, "").Body.String()
}

// TestGolden_Metrics: every metric with its name, its help, its labels and the number that belongs there. Whoever has dashboards and
// alerts relies on them: a change is one for CHANGELOG.md.
func TestGolden_Metrics(t *testing.T) {
	var text strings.Builder
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(everything(watchedManagement()), promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", metricsPath, nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.Contains(line, metricsPrefix) {
			text.WriteString(strings.Replace(line, `version="`+buildVersion()+`"`, `version="…"`, 1))
		}
	}
	golden(t, "metrics.txt", text.String())
}

// TestMetrics_Lint: names and units are as Prometheus wants them.
func TestMetrics_Lint(t *testing.T) {
	families, err := everything(watchedManagement()).Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(families) < 60 {
		t.Fatalf("%d families, %v", len(families), err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// TestMetrics_WhileStarting: a node that replays its log tells of its log and its health, and no number that is not known yet.
func TestMetrics_WhileStarting(t *testing.T) {
	m := watchedManagement()
	m.system = stillSystem{starting: true}
	text := scraped(t, m)
	if !strings.Contains(text, "\ntasard_log_last_record 30\n") || strings.Contains(text, "\ntasard_accounts") || strings.Contains(text, "\ntasard_rates") {
		t.Error(text)
	}
}

// TestMetrics_Exposed: the listener for Prometheus has metrics and health alone, without causes, and changes nothing.
func TestMetrics_Exposed(t *testing.T) {
	node := &stillNode{}
	m := watchedManagement()
	m.node = node
	for target, want := range map[string]int{
		"GET /metrics": 200, "GET /livez": 200, "GET /readyz": 200, "HEAD /livez": 200, "POST /metrics": 405, "GET /": 404, "GET /debug/pprof/": 404,
		"GET /accounts": 404, "POST /accounts/7/suspend": 404, "GET /quarantine": 404, "GET /backup": 404, "GET /sources": 404, "DELETE /keys-required": 404,
	} {
		method, path, _ := strings.Cut(target, " ")
		answer := httptest.NewRecorder()
		m.exposed().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		if answer.Code != want {
			t.Errorf("%s: %d, want %d", target, answer.Code, want)
		}
		if body := answer.Body.String(); strings.Contains(body, "secret") || path == readyzPath && !strings.Contains(body, `{"status":"degraded","conditions":[{"name":"log"`) {
			t.Errorf("%s: %s", target, body)
		}
	}
	if node.changes > 0 {
		t.Error("the listener has changed something")
	}
}

// TestMetrics_Listen serves them over TCP where that is asked for, from the first moment, and stops with the node.
func TestMetrics_Listen(t *testing.T) {
	p := start(t, realNow, append(serveArgs(t.TempDir()), "--metrics-listen", "127.0.0.1:0")...).listening()
	_, at, found := strings.Cut(p.await("metrics are at "), "metrics are at ")
	if !found {
		t.Fatal(p.output())
	}
	p.await("recovered 0 rates")
	base := strings.TrimSuffix(at, metricsPath)
	p.mustGet("/livez")
	exposed := &program{t: t, url: base}
	text := exposed.mustGet(metricsPath)
	for _, line := range []string{
		`tasard_http_requests_total{method="GET",route="/livez",status="200"} 1`, `tasard_accounts 0`, `tasard_readiness{status="unavailable"} 1`, `tasard_log_last_record 0`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if status, _ := exposed.ask(http.MethodGet, "/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz without rates: %d", status)
	}
	if status, _ := exposed.ask(http.MethodGet, "/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("profiles: %d", status)
	}
	if strings.Contains(p.output(), "whoever reaches this address") {
		t.Error("a warning about an address of this machine alone")
	}
	p.signal(syscall.SIGTERM)
	if _, err := net.Dial("tcp", strings.TrimPrefix(base, "http://")); err == nil {
		t.Error("the listener outlives the node")
	}
}

// TestMetrics_ListenAddresses: an address that is open to all must be written so; what can't be listened on is said, and nothing is left.
func TestMetrics_ListenAddresses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		address string
		code    int
		say     string
	}{
		{":9100", exitUsage, "0.0.0.0:9100"}, {"127.0.0.1", exitUsage, "HOST:PORT"}, {"127.0.0.1:x", exitUsage, "port"},
		{taken.Addr().String(), exitBusy, "--metrics-listen"},
	} {
		got := run(t, nil, nil, append(serveArgs(t.TempDir()+"/data"), "--metrics-listen", c.address)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.say) {
			t.Errorf("%s: %d: %s", c.address, got.code, got.stderr)
		}
	}
	m := watchedManagement()
	var log bytes.Buffer
	m.log = newLogger(&log, logOptions{format: "text", level: "info"})
	open, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	e := m.expose(metricsListener{open})
	if err := e.stop(context.Background()); err != nil || !strings.Contains(log.String(), "WARN  metrics can be read by whoever reaches this address") {
		t.Errorf("%v: %s", err, log.String())
	}
}

// TestAccessLog writes a line of JSON for each answer that is wanted, with the id that the caller has, and nothing of what was asked.
func TestAccessLog(t *testing.T) {
	for which, wanted := range map[string][]string{accessAll: {"200", "404", "400"}, accessErrors: {"404", "400"}, accessOff: nil} {
		t.Run(which, func(t *testing.T) {
			p := start(t, realNow, append(serveArgs(t.TempDir()), "--access-log", which)...).listening()
			p.await("recovered 0 rates")
			ids := map[string]string{}
			for _, path := range []string{"/livez?secret=1", "/secret/path", "/v1/currencies?secret=1"} {
				status, headers := p.ask(http.MethodGet, path)
				ids[headers.Get("X-Request-Id")] = http.StatusText(status)
			}
			p.signal(syscall.SIGTERM)
			var got []string
			for line := range strings.Lines(p.output()) {
				if !strings.HasPrefix(line, "{") {
					continue
				}
				var access struct {
					Time, Level, Msg, RequestID, Method, Route, Network string
					Status, Bytes                                       int
					Micros                                              int64
					Keyed                                               bool
				}
				decoder := json.NewDecoder(strings.NewReader(line))
				decoder.DisallowUnknownFields()
				if err := decoder.Decode(&access); err != nil || strings.Contains(line, "secret") || strings.Contains(line, "127.0.0.1") {
					t.Errorf("%v: %s", err, line)
				}
				if ids[access.RequestID] != http.StatusText(access.Status) || access.Msg != "access" || access.Network != "127.0.0.0/24" || access.Bytes == 0 ||
					access.Micros > 5e6 || access.Method != "GET" || access.Keyed {
					t.Errorf("%s, the answers had the ids %v", line, ids)
				}
				got = append(got, access.Route+" "+http.StatusText(access.Status))
			}
			var want []string
			for _, status := range wanted {
				want = append(want, map[string]string{"200": "/livez OK", "404": "none Not Found", "400": "/v1/currencies Bad Request"}[status])
			}
			if !slices.Equal(got, want) {
				t.Errorf("told of %q, want %q:\n%s", got, want, p.output())
			}
		})
	}
}

// TestMetrics_Described: what is given was announced, so that two parts never give the same name.
func TestMetrics_Described(t *testing.T) {
	announced := make(chan *prometheus.Desc, 1000)
	watchedManagement().registry().Describe(announced)
	close(announced)
	var all strings.Builder
	for desc := range announced {
		all.WriteString(desc.String() + "\n")
	}
	for line := range strings.Lines(readFile(t, goldenDir+"/metrics.txt")) {
		if name, _, found := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " "); found && strings.HasPrefix(line, "# TYPE ") && !strings.Contains(all.String(), `"`+name+`"`) {
			t.Errorf("%s is given and was not announced", name)
		}
	}
}

// TestMetrics_OfLibraries: what dashboard and alerts ask of Go and of the process is there. Their other queries are held in packaging.
func TestMetrics_OfLibraries(t *testing.T) {
	text := scraped(t, watchedManagement())
	asked := regexp.MustCompile(`\b(go|process)_\w+`).FindAllString(readFile(t, "packaging/grafana/tasard.json")+readFile(t, "packaging/prometheus/alerts.yml"), -1)
	for _, name := range asked {
		if !strings.Contains(text, "\n"+name+" ") && !strings.Contains(text, "\n"+name+"{") {
			t.Errorf("there is no metric %s", name)
		}
	}
	if len(asked) < 10 {
		t.Errorf("only %q are asked for", asked)
	}
}

// BenchmarkScrape is what an answer to Prometheus costs.
func BenchmarkScrape(b *testing.B) {
	m := watchedManagement()
	handler := m.metrics()
	req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, metricsPath, nil)
	b.ReportAllocs()
	for b.Loop() {
		answer := httptest.NewRecorder()
		if handler.ServeHTTP(answer, req); answer.Code != http.StatusOK {
			b.Fatal(answer.Code)
		}
	}
}
