package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi"
)

// What lies in packaging for those who watch nodes.
const (
	dashboardFile = "packaging/grafana/tasard.json"
	alertsFile    = "packaging/prometheus/alerts.yml"
)

// scale is what may be asked about a metric: its labels, and those of their values that are known to be all.
type scale struct {
	labels map[string][]string // nil values: anything
}

// scales are all series that a node can have, by name.
func scales(t *testing.T) map[string]scale {
	t.Helper()
	m := watchedManagement()
	front := httpapi.New(httpapi.Config{
		Service: struct{ engine.Service }{}, Catalogue: engine.DefaultCatalogue(), Clock: clockFrom(realNow), RequestID: httpapi.RequestIDs(1),
	})
	all := map[string]scale{"up": {map[string][]string{}}}
	for _, name := range []string{"go", "process"} { // of libraries: what is there is all
		gatherScales(t, m, func(metric string) bool { return strings.HasPrefix(metric, name+"_") }, all)
	}
	gatherScales(t, m, func(metric string) bool { return strings.HasPrefix(metric, metricsPrefix) }, all)
	real := watchedManagement()
	real.front = front
	closed := map[string]scale{}
	gatherScales(t, real, func(string) bool { return true }, closed)
	for _, name := range []string{"http_errors_total", "admissions_total", "http_shed_requests_total"} { // every value that they can have
		all[metricsPrefix+name] = closed[metricsPrefix+name]
	}
	for name, found := range all {
		known := slices.Contains([]string{"http_errors_total", "admissions_total", "http_shed_requests_total", "rates", "readiness"}, strings.TrimPrefix(name, metricsPrefix))
		for label := range found.labels {
			if !known {
				found.labels[label] = nil
			}
		}
	}
	all[metricsPrefix+"condition"] = scale{conditionStates(t)}
	all[metricsPrefix+"readiness"] = scale{map[string][]string{"status": {string(engine.Ready), string(engine.Degraded), string(engine.Unavailable)}}}
	return all
}

// gatherScales adds the series that a node has.
func gatherScales(t *testing.T, m *management, wanted func(string) bool, into map[string]scale) {
	t.Helper()
	families, err := everything(m).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if !wanted(family.GetName()) {
			continue
		}
		labels := map[string][]string{}
		for _, metric := range family.Metric {
			for _, label := range metric.Label {
				labels[label.GetName()] = append(labels[label.GetName()], label.GetValue())
			}
			if metric.Summary != nil {
				labels["quantile"] = nil
			}
		}
		names := []string{family.GetName()}
		if family.Metric[0].Histogram != nil {
			names = []string{family.GetName() + "_bucket", family.GetName() + "_sum", family.GetName() + "_count"}
		}
		for _, name := range names {
			into[name] = scale{maps.Clone(labels)}
		}
		if family.Metric[0].Histogram != nil {
			into[family.GetName()+"_bucket"].labels["le"] = nil
		}
	}
}

// conditionStates are the names and states that httpapi/doc.go tells.
func conditionStates(t *testing.T) map[string][]string {
	t.Helper()
	labels := map[string][]string{"state": {engine.ConditionOK}}
	for _, line := range regexp.MustCompile(`(?m)^//\t(\w+) +(\w+) +(?:200|503) `).FindAllStringSubmatch(readFile(t, "httpapi/doc.go"), -1) {
		labels["name"], labels["state"] = append(labels["name"], line[1]), append(labels["state"], line[2])
	}
	if len(labels["name"]) < 15 {
		t.Fatalf("httpapi/doc.go tells only the conditions %v", labels)
	}
	return labels
}

var (
	seriesForm  = regexp.MustCompile(`\b((?:tasard|go|process)_\w+|up)\b(?:\{([^}]*)\})?`)
	matcherForm = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
	groupedForm = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
)

// queryProblems holds a query against what there is: names of metrics, of labels, and of their values where all are known.
func queryProblems(query string, known map[string]scale) (problems []string) {
	series := seriesForm.FindAllStringSubmatch(query, -1)
	if len(series) == 0 {
		problems = append(problems, "asks for no metric")
	}
	labels := map[string]bool{"job": true, "instance": true}
	for _, one := range series {
		scale, found := known[one[1]]
		if !found {
			problems = append(problems, "there is no metric "+one[1])
			continue
		}
		for label := range scale.labels {
			labels[label] = true
		}
		for _, matcher := range matcherForm.FindAllStringSubmatch(one[2], -1) {
			values, has := scale.labels[matcher[1]]
			switch {
			case matcher[1] == "job" || matcher[1] == "instance":
			case !has:
				problems = append(problems, fmt.Sprintf("%s has no label %s", one[1], matcher[1]))
			case values != nil && !slices.ContainsFunc(values, regexp.MustCompile("^(?:"+matcher[3]+")$").MatchString):
				problems = append(problems, fmt.Sprintf("%s: %s is never %s", one[1], matcher[1], matcher[3]))
			}
		}
	}
	for _, grouped := range groupedForm.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(grouped[1], ", ") {
			if !labels[label] {
				problems = append(problems, "groups by "+label+", which none of its metrics has")
			}
		}
	}
	return problems
}

// dashboard is what is read of the file.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct{ Name, Definition string }
	}
	Panels []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ H, W, X, Y int }
		Targets                  []struct{ Expr string }
	}
}

// TestPackaging_Dashboard: every query of the dashboard names metrics and labels that there are, every panel has its place, and every
// metric of ours is on it.
func TestPackaging_Dashboard(t *testing.T) {
	var board dashboard
	if err := json.Unmarshal([]byte(readFile(t, dashboardFile)), &board); err != nil {
		t.Fatal(err)
	}
	known, asked := scales(t), ""
	for _, variable := range board.Templating.List {
		asked += variable.Definition
	}
	ids, taken, rows := map[int]bool{}, map[[2]int]string{}, []string{}
	for _, panel := range board.Panels {
		if ids[panel.ID] || panel.Title == "" {
			t.Errorf("panel %d %q: its id or its title is not its own", panel.ID, panel.Title)
		}
		ids[panel.ID] = true
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies over %s, or beyond the edge", panel.Title, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
		if panel.Type == "row" {
			rows = append(rows, panel.Title)
			continue
		}
		if len(panel.Targets) == 0 {
			t.Errorf("%s asks nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			asked += target.Expr
			for _, problem := range queryProblems(target.Expr, known) {
				t.Errorf("%s: %s: %s", panel.Title, problem, target.Expr)
			}
		}
	}
	if want := []string{"Now", "Traffic", "Latency", "Refusals", "Log and disk", "Rates and sources", "Accounts", "Process", "Cluster"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	// What others say better, or what only a person asks for.
	spared := []string{"log_segments", "log_first_record", "currency_fresh_until_timestamp_seconds", "snapshots"}
	for name := range known {
		short, ours := strings.CutPrefix(name, metricsPrefix)
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if ours && !slices.Contains(spared, short) && !strings.Contains(asked, base) {
			t.Errorf("%s is on no panel", name)
		}
	}
}

// alerts is what is read of the file.
type alerts struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

// TestPackaging_Alerts: every rule asks for what there is, waits a while, says how urgent it is, what happened and what to do.
func TestPackaging_Alerts(t *testing.T) {
	var file alerts
	decoder := yaml.NewDecoder(strings.NewReader(readFile(t, alertsFile)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	known, names := scales(t), map[string]bool{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			for _, problem := range queryProblems(rule.Expr, known) {
				t.Errorf("%s: %s: %s", rule.Alert, problem, rule.Expr)
			}
			severity := rule.Labels["severity"]
			if names[rule.Alert] || rule.For == "" || severity != "page" && severity != "ticket" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s is not whole: %+v", rule.Alert, rule)
			}
			names[rule.Alert] = true
		}
	}
	for _, name := range []string{"TasardDown", "TasardUnavailable", "TasardReadOnly", "TasardRatesNotHeard"} {
		if !names[name] {
			t.Errorf("nobody is woken by %s", name)
		}
	}
}

// TestPackaging_WatchControl: a query that asks for what there is not is seen.
func TestPackaging_WatchControl(t *testing.T) {
	known := scales(t)
	for query, want := range map[string]string{
		`rate(tasard_http_request_total[5m])`:                       "no metric tasard_http_request_total",
		`tasard_http_request_duration_seconds`:                      "no metric",
		`tasard_http_errors_total{code="overload"}`:                 "code is never overload",
		`tasard_condition{name="disk",state="readonly"}`:            "state is never readonly",
		`tasard_rates{kind="stale"}`:                                "has no label kind",
		`sum by (route) (tasard_accounts)`:                          "groups by route",
		`histogram_quantile(0.9, tasard_log_sync_duration_seconds)`: "no metric",
		`1 + 1`:           "no metric",
		`go_gorountines`:  "no metric go_gorountines",
		`up{job="other"}`: "",
		`sum by (job, code) (rate(tasard_http_errors_total{code=~"overl.*"}[5m])) > 1`: "",
	} {
		problems := strings.Join(queryProblems(query, known), "; ")
		if want == "" && problems != "" || !strings.Contains(problems, want) {
			t.Errorf("%s: %q, want %q", query, problems, want)
		}
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
