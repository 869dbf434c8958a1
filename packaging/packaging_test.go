package packaging_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi"
)

// readFile reads a file by its path in the repository.
func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPackaging_Unit checks the service's command and directories, and the exit codes after which it is not restarted.
func TestPackaging_Unit(t *testing.T) {
	unit := readUnit(t, "packaging/systemd/tasard.service")
	for key, want := range map[string]string{
		"Type":                     "notify",
		"ExecStart":                "/usr/bin/tasard serve --config /etc/tasard/tasard.toml",
		"RestartPreventExitStatus": "64 78", // bad arguments, bad configuration
		"StateDirectory":           "tasard", "RuntimeDirectory": "tasard", "ConfigurationDirectory": "tasard",
		"User": "tasard", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "ProtectSystem": "strict", "MemoryDenyWriteExecute": "yes",
	} {
		if got, found := unit[key]; !found || got[len(got)-1] != want {
			t.Errorf("%s=%q, want %q", key, got, want)
		}
	}
	settings := readFile(t, "packaging/tasard.toml")
	if socket := readUnit(t, "packaging/systemd/tasard-redirect.socket"); socket["FileDescriptorName"][0] != "redirect" || socket["Service"][0] != "tasard.service" {
		t.Errorf("packaging/systemd/tasard-redirect.socket: %v", socket)
	}
	credential := "/run/credentials/tasard.service/" + unit["LoadCredential"][0]
	if !strings.Contains(settings, "#smtp-password-file = \""+credential+"\"\n") {
		t.Errorf("packaging/tasard.toml does not name %s", credential)
	}
	if !strings.Contains(readFile(t, "packaging/systemd/tasard.sysusers"), "\nu tasard - ") {
		t.Error("packaging/systemd/tasard.sysusers makes no user tasard")
	}
}

// readUnit returns the settings of a unit in their order.
func readUnit(t *testing.T, path string) map[string][]string {
	t.Helper()
	unit := map[string][]string{}
	for line := range strings.SplitSeq(readFile(t, path), "\n") {
		if key, value, found := strings.Cut(line, "="); found && !strings.HasPrefix(line, "#") {
			unit[key] = append(unit[key], value)
		}
	}
	return unit
}

// TestPackaging_Places wants each file that nfpm.yaml names to exist, and the program's paths to be installed.
func TestPackaging_Places(t *testing.T) {
	description := readFile(t, "packaging/nfpm.yaml")
	sources := regexp.MustCompile(`(?m)(?:src|install|remove): (packaging/\S+)$`).FindAllStringSubmatch(description, -1)
	if len(sources) < 8 {
		t.Errorf("%d files of packaging are named, want at least 8", len(sources))
	}
	for _, found := range sources {
		if files, err := filepath.Glob("../" + found[1]); err != nil || len(files) == 0 {
			t.Errorf("packaging/nfpm.yaml names %s, which does not exist: %v", found[1], err)
		}
	}
	for _, place := range []string{"/usr/bin/tasard", "/etc/tasard/tasard.toml", "/usr/lib/systemd/system/tasard.service"} {
		if !strings.Contains(description, "dst: "+place+"\n") {
			t.Errorf("packaging/nfpm.yaml installs no %s", place)
		}
	}
}

// TestPackaging_OneGo wants Makefile and Dockerfile to name the same Go release, one that go.mod allows.
func TestPackaging_OneGo(t *testing.T) {
	inMakefile := regexp.MustCompile(`(?m)^RELEASE_GO := go([0-9.]+)$`).FindStringSubmatch(readFile(t, "Makefile"))
	inDockerfile := regexp.MustCompile(`(?m)^ARG GO_VERSION=([0-9.]+)$`).FindStringSubmatch(readFile(t, "Dockerfile"))
	needed := regexp.MustCompile(`(?m)^go ([0-9]+\.[0-9]+)`).FindStringSubmatch(readFile(t, "go.mod"))
	if inMakefile == nil || inDockerfile == nil || needed == nil || inMakefile[1] != inDockerfile[1] || !strings.HasPrefix(inMakefile[1], needed[1]+".") {
		t.Errorf("Makefile %q, Dockerfile %q, go.mod %q", inMakefile, inDockerfile, needed)
	}
}

// TestPackaging_OneBuild wants Makefile, Dockerfile and release to build the program with the same flags for its size.
func TestPackaging_OneBuild(t *testing.T) {
	for _, file := range []string{"Makefile", "Dockerfile", ".ci/release/release"} {
		if !regexp.MustCompile(`build -trimpath -buildvcs=.*\$\(cat .ci/smaller\) `).MatchString(readFile(t, file)) {
			t.Errorf("%s does not build with the flags in .ci/smaller", file)
		}
	}
}

// TestPackaging_OneImage wants the Dockerfile to build the image of a release: same user, same files, same command.
func TestPackaging_OneImage(t *testing.T) {
	dockerfile, released := readFile(t, "Dockerfile"), readFile(t, ".ci/release/release")
	for _, both := range [][2]string{
		{"USER 65532:65532", `User: "65532:65532"`},
		{"TASARD_CONFIG=/etc/tasard/tasard.toml", "TASARD_CONFIG=/etc/tasard/tasard.toml"},
		{"packaging/image/tasard.toml", "packaging/image/tasard.toml"},
		{`ENTRYPOINT ["/usr/bin/tasard"]`, `Entrypoint: ["/usr/bin/tasard"]`},
		{`CMD ["serve"]`, `Cmd: ["serve"]`},
		{"VOLUME /var/lib/tasard", `"/var/lib/tasard": {}`},
		{"EXPOSE 8080", `"8080/tcp": {}`},
	} {
		if !strings.Contains(dockerfile, both[0]) || !strings.Contains(released, both[1]) {
			t.Errorf("%q of the Dockerfile and %q of the release do not go together", both[0], both[1])
		}
	}
	health := `["/usr/bin/tasard", "ping", "--live"]`
	compose := strings.Replace(health, "[", `["CMD", `, 1)
	if !strings.Contains(dockerfile, "CMD "+health) || !strings.Contains(readFile(t, "packaging/compose.yaml"), "test: "+compose) ||
		!strings.Contains(readFile(t, "cmd/testdata/help.txt"), "$ tasard ping --help\n") {
		t.Errorf("Dockerfile and compose file do not both ask %s", health)
	}
}

// TestRelease_Refuses checks which versions of which commits a release refuses, before it builds anything.
func TestRelease_Refuses(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, ".ci", "release", "release")
	if err := errors.Join(os.MkdirAll(filepath.Dir(script), 0o700), os.MkdirAll(filepath.Join(dir, "dist", "old"), 0o700),
		os.WriteFile(script, []byte(readFile(t, ".ci/release/release")), 0o600)); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)
		if output, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, output)
		}
	}
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "-m", "one")
	git("tag", "--no-sign", "v1.0.0")
	git("commit", "--quiet", "--allow-empty", "-m", "two")
	for version, want := range map[string]string{
		"":           "has no tag like v1.2.3; tag it, or give VERSION=1.2.3",
		"1.0.0":      "the tag v1.0.0 is on commit",
		"v1.1.0":     `version "v1.1.0": want one like`,
		"1.1":        `version "1.1": want one like`,
		"1.1.0+x":    `version "1.1.0+x": want one like`,
		"1.1.0-rc.2": "dist: not empty; remove it",
	} {
		output, err := exec.CommandContext(t.Context(), "bash", script, version).CombinedOutput()
		if err == nil || !strings.Contains(string(output), want) {
			t.Errorf("%q: %v, %s; want %q", version, err, output, want)
		}
	}
}

// The monitoring files of packaging.
const (
	dashboardFile = "packaging/grafana/tasard.json"
	alertsFile    = "packaging/prometheus/alerts.yml"
)

// metricLabels maps metrics to their labels, and these to their values if the set is closed, else nil.
type metricLabels map[string]map[string][]string

// knownMetrics returns the metrics of the golden file. Package node/metrics tests those of libraries.
func knownMetrics(t *testing.T) metricLabels {
	t.Helper()
	all := metricLabels{"up": {}}
	for line := range strings.Lines(readFile(t, "node/metrics/testdata/metrics.txt")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		series := seriesForm.FindStringSubmatch(line)
		if all[series[1]] == nil {
			all[series[1]] = map[string][]string{}
		}
		for _, label := range matcherForm.FindAllStringSubmatch(series[2], -1) {
			all[series[1]][label[1]] = nil
		}
	}
	all["tasard_rates"]["state"] = []string{"current", "stale"}
	all["tasard_readiness"]["status"] = []string{string(engine.Ready), string(engine.Degraded), string(engine.Unavailable)}
	all["tasard_condition"] = conditionStates(t)
	front := httpapi.New(httpapi.Config{
		Service: struct{ engine.Service }{}, Catalogue: engine.DefaultCatalogue(), Clock: func() time.Time { return time.Unix(0, 0) }, RequestID: httpapi.RequestIDs(1),
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(front.Metrics()...)
	families, err := registry.Gather() // every value that can be counted
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if values := all[family.GetName()]; values != nil { // nil for the buckets of a histogram
					values[label.GetName()] = append(values[label.GetName()], label.GetValue())
				}
			}
		}
	}
	for _, open := range []string{"method", "status"} { // only some exist before the first request
		all["tasard_http_requests_total"][open] = nil
	}
	return all
}

// conditionStates returns the names and states of docs/recovery.md.
func conditionStates(t *testing.T) map[string][]string {
	t.Helper()
	labels := map[string][]string{"state": {engine.ConditionOK}}
	for _, line := range regexp.MustCompile("(?m)^\\| (\\w+) \\| (`\\w+`(?:, `\\w+`)*) \\|").FindAllStringSubmatch(readFile(t, "docs/recovery.md"), -1) {
		for state := range strings.SplitSeq(line[2], ", ") {
			labels["name"], labels["state"] = append(labels["name"], line[1]), append(labels["state"], strings.Trim(state, "`"))
		}
	}
	if len(labels["name"]) < 15 {
		t.Fatalf("docs/recovery.md tells only the conditions %v", labels)
	}
	return labels
}

var (
	seriesForm  = regexp.MustCompile(`\b((?:tasard|go|process)_\w+|up)\b(?:\{([^}]*)\})?`)
	matcherForm = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
	groupedForm = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
)

// queryProblems checks that the metrics, labels and label values of a query exist.
func queryProblems(query string, metrics metricLabels) (problems []string) {
	series := seriesForm.FindAllStringSubmatch(query, -1)
	if len(series) == 0 {
		problems = append(problems, "asks for no metric")
	}
	labels := map[string]bool{"job": true, "instance": true}
	for _, one := range series {
		of, found := metrics[one[1]]
		if strings.HasPrefix(one[1], "go_") || strings.HasPrefix(one[1], "process_") {
			continue
		}
		if !found {
			problems = append(problems, "there is no metric "+one[1])
			continue
		}
		for label := range of {
			labels[label] = true
		}
		for _, matcher := range matcherForm.FindAllStringSubmatch(one[2], -1) {
			values, has := of[matcher[1]]
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

// dashboard holds the parts of the file that are checked.
type dashboard struct {
	Templating struct {
		List []struct{ Name, Definition string }
	}
	Panels []struct {
		Type, Title string
		Targets     []struct{ Expr string }
	}
}

// TestPackaging_Dashboard wants every query of the dashboard to name existing metrics and labels, and every metric of
// ours to be on a panel.
func TestPackaging_Dashboard(t *testing.T) {
	var board dashboard
	if err := json.Unmarshal([]byte(readFile(t, dashboardFile)), &board); err != nil {
		t.Fatal(err)
	}
	metrics, asked := knownMetrics(t), ""
	for _, variable := range board.Templating.List {
		asked += variable.Definition
	}
	for _, panel := range board.Panels {
		if (len(panel.Targets) == 0) != (panel.Type == "row") {
			t.Errorf("%s asks nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			asked += target.Expr
			for _, problem := range queryProblems(target.Expr, metrics) {
				t.Errorf("%s: %s: %s", panel.Title, problem, target.Expr)
			}
		}
	}
	// Metrics that others express better, or that are only for alerts and occasional queries.
	spared := []string{"log_segments", "log_first_record", "currency_fresh_until_timestamp_seconds", "snapshots", "stderr_dropped_lines_total",
		"archive_documents", "archive_bytes", "archive_failures_total"}
	for name := range metrics {
		short, ours := strings.CutPrefix(name, "tasard_")
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if ours && !slices.Contains(spared, short) && !strings.Contains(asked, base) {
			t.Errorf("%s is on no panel", name)
		}
	}
}

// alerts holds the parts of the file that are checked.
type alerts struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

// TestPackaging_Alerts wants every rule to query existing metrics, to wait a while, and to have severity, summary
// and description.
func TestPackaging_Alerts(t *testing.T) {
	var file alerts
	decoder := yaml.NewDecoder(strings.NewReader(readFile(t, alertsFile)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	metrics, names := knownMetrics(t), map[string]bool{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			for _, problem := range queryProblems(rule.Expr, metrics) {
				t.Errorf("%s: %s: %s", rule.Alert, problem, rule.Expr)
			}
			severity := rule.Labels["severity"]
			if names[rule.Alert] || rule.For == "" || severity != "page" && severity != "ticket" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s is not whole: %+v", rule.Alert, rule)
			}
			names[rule.Alert] = true
		}
	}
	for _, name := range []string{"TasardDown", "TasardUnavailable", "TasardReadOnly", "TasardRatesNotChecked"} {
		if !names[name] {
			t.Errorf("there is no alert %s", name)
		}
	}
}

// TestPackaging_WatchControl wants queries of unknown metrics, labels and values to be reported.
func TestPackaging_WatchControl(t *testing.T) {
	metrics := knownMetrics(t)
	for query, want := range map[string]string{
		`rate(tasard_http_request_total[5m])`:                       "no metric tasard_http_request_total",
		`tasard_http_request_duration_seconds`:                      "no metric",
		`tasard_http_errors_total{code="overload"}`:                 "code is never overload",
		`tasard_condition{name="disk",state="readonly"}`:            "state is never readonly",
		`tasard_rates{kind="stale"}`:                                "has no label kind",
		`sum by (route) (tasard_accounts)`:                          "groups by route",
		`histogram_quantile(0.9, tasard_log_sync_duration_seconds)`: "no metric",
		`1 + 1`:           "no metric",
		`up{job="other"}`: "",
		`sum by (job, code) (rate(tasard_http_errors_total{code=~"overl.*"}[5m])) > 1`: "",
	} {
		problems := strings.Join(queryProblems(query, metrics), "; ")
		if want == "" && problems != "" || !strings.Contains(problems, want) {
			t.Errorf("%s: %q, want %q", query, problems, want)
		}
	}
}
