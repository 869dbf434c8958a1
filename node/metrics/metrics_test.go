package metrics

import (
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi"
	"github.com/tasard/tasard/wal"
)

const golden = "testdata/metrics.txt"

// update rewrites the golden file; make golden sets it.
var update = flag.Bool("update", false, "rewrite the golden files")

// server is one that has answered nothing.
func server() *httpapi.Server {
	return httpapi.New(httpapi.Config{
		Service: struct{ engine.Service }{}, Catalogue: engine.DefaultCatalogue(), Clock: func() time.Time { return time.Unix(0, 0) }, RequestID: httpapi.RequestIDs(1),
	})
}

type fakeSystem struct{ starting bool }

func (s fakeSystem) Stats() actors.Stats {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	stats := actors.Stats{
		Serving: !s.starting, Accounts: 22, Leases: 24, HasLog: true,
		Mailboxes:  []actors.MailboxStats{{Kind: "currency", Waiting: 19, WaitingMax: 20, Rejected: 21}, {Kind: "account", Waiting: 25, WaitingMax: -1, Rejected: 26}},
		Currencies: []actors.CurrencyStats{{Currency: "USD", CheckedAt: at(27), FreshUntil: at(28)}, {Currency: "EUR"}},
		Log: wal.Stats{
			First: 29, Last: 30, Segments: 31, LogBytes: 32, Snapshots: 33, SnapshotBytes: 34, SnapshotSequence: 35, SnapshotAt: at(36), Batches: 37, Records: 38, Bytes: 39,
			Syncs: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tasard_log_sync_duration_seconds", Help: "Time of the disk to make a batch durable."}),
		},
	}
	stats.Log.Syncs.Observe(0.04)
	return stats
}

func (fakeSystem) Currencies() (*engine.Page[engine.CurrencyItem], error) {
	item := engine.CurrencyItem{QuoteCount: 50, CurrentQuoteCount: 43}
	item.Code = "USD"
	return &engine.Page[engine.CurrencyItem]{Items: []engine.CurrencyItem{item}}, nil
}

func (fakeSystem) Quarantine(string) ([]engine.Quarantined, error) {
	return []engine.Quarantined{{ID: 17, Observation: engine.Observation{Currency: "USD"}}}, nil
}

func (fakeSystem) KeyPolicy() account.KeyPolicy {
	return account.KeyPolicy{AnnouncedAt: time.Unix(1, 0), RequiredAt: time.Unix(44, 0)}
}

// clusterStatus is a cluster of three nodes of which one is gone.
func clusterStatus() engine.Cluster {
	return engine.Cluster{
		Cluster: "rates", Majority: true, Since: time.Unix(61, 0), Leader: "node-2",
		Nodes: []engine.ClusterNode{
			{Name: "node-1", Address: "10.0.0.1:6222", Self: true, Member: true, Record: 62, Lag: 1},
			{Name: "node-2", Address: "10.0.0.2:6222", Member: true, Reachable: true, Leader: true, Current: true, Record: 63},
			{Name: "node-3", Address: "10.0.0.3:6222", Member: true, Lag: 63},
		},
	}
}

// all has something of everything to tell: a degraded node in a cluster, and a source that was tried.
func all() Config {
	return Config{
		Version: "v1", System: fakeSystem{}, Server: server().Metrics(), Cluster: clusterStatus,
		Health: func() []engine.Condition {
			return []engine.Condition{engine.HealthyCondition("log"), {Name: "disk", State: "slow", Detail: "slow"}}
		},
		Sources: func() []collectors.Health {
			return []collectors.Health{{SourceID: "never"}, {
				SourceID: "popular-site", State: collectors.Partial, Runs: 1, Confirmed: true, LastSuccess: time.Unix(55, 0), ConsecutiveFailures: 56,
				Failures: map[source.FailureKind]uint64{"empty": 57}, Counts: collectors.Counts{Accepted: 58, Quarantined: 59, Repeated: 60},
				Baseline: collectors.Baseline{At: time.Unix(71, 0), Quotes: map[string]collectors.BaselineQuote{
					"bhd:USD:unspecified:commercial": {UnchangedSince: time.Unix(1, 0), Sides: [2]collectors.BaselineSide{{Runs: 64}, {Runs: 64, Missing: 3}}},
				}},
			}}
		},
		Mail: func() mail.Stats {
			return mail.Stats{Waiting: 45, Sent: 46, Refused: 47, Expired: 49, Replaced: 51, Abandoned: 52, Dropped: 53, Failures: 54}
		},
		Archive:           func() archive.Stats { return archive.Stats{Documents: 72, Bytes: 73, Failures: 74} },
		DroppedLogLines:   func() uint64 { return 66 },
		DiskFree:          func() (int64, error) { return 69, nil },
		Backup:            &Outcome{known: true, ok: true, success: time.Unix(67, 0)},
		Reload:            &Outcome{known: true, success: time.Unix(68, 0)},
		CertificateExpiry: func() time.Time { return time.Unix(64, 0) },
	}
}

func scraped(t *testing.T, of Config) string {
	t.Helper()
	answer := httptest.NewRecorder()
	Handler(of).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return answer.Body.String()
}

// TestGolden_Metrics keeps every metric with its name, help, labels and value. Dashboards and alerts rely on them,
// so a change belongs into CHANGELOG.md. Of the routes it keeps one.
func TestGolden_Metrics(t *testing.T) {
	var text strings.Builder
	for line := range strings.Lines(scraped(t, all())) {
		if otherRoute := strings.Contains(line, "route=") && !strings.Contains(line, `route="/v1/rates/best"`); strings.Contains(line, prefix) && !otherRoute {
			text.WriteString(strings.Replace(line, `version="v1"`, `version="…"`, 1))
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); text.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s%v", text.String(), want, err)
	}
}

// TestMetrics_Lint: names and units are as Prometheus wants them.
func TestMetrics_Lint(t *testing.T) {
	families, err := registry(all()).Gather()
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

// TestMetrics_WhileStarting: a node that replays its log has no metrics of its state.
func TestMetrics_WhileStarting(t *testing.T) {
	of := all()
	of.System = fakeSystem{starting: true}
	text := scraped(t, of)
	if !strings.Contains(text, "\ntasard_log_last_record 30\n") || strings.Contains(text, "\ntasard_accounts") || strings.Contains(text, "\ntasard_rates") {
		t.Error(text)
	}
}

// TestMetrics_OfLibraries: the metrics of Go and of the process that dashboard and alerts query exist.
func TestMetrics_OfLibraries(t *testing.T) {
	text := scraped(t, all())
	dashboard, err := os.ReadFile("../../packaging/grafana/tasard.json")
	alerts, alertsErr := os.ReadFile("../../packaging/prometheus/alerts.yml")
	if err = errors.Join(err, alertsErr); err != nil {
		t.Fatal(err)
	}
	asked := regexp.MustCompile(`\b(go|process)_\w+`).FindAllString(string(dashboard)+string(alerts), -1)
	for _, name := range asked {
		if !strings.Contains(text, "\n"+name+" ") && !strings.Contains(text, "\n"+name+"{") {
			t.Errorf("there is no metric %s", name)
		}
	}
	if len(asked) < 10 {
		t.Errorf("only %q are asked for", asked)
	}
}
