package sources

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

// checkWith checks sources with a network of which dial opens the connections. It returns what is printed, and how long
// the check took.
func checkWith(t *testing.T, dial func(context.Context) error, asJSON bool, ids ...string) (out, progress string, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr bytes.Buffer
		p := &process.Process{
			Stdout: &stdout, Stderr: &stderr, Clock: time.Now,
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, dial(ctx) },
		}
		start := p.Clock()
		err = checkSources(t.Context(), p, &options{json: asJSON}, ids)
		out, progress, took = stdout.String(), stderr.String(), p.Clock().Sub(start)
	})
	return out, progress, took, err
}

// A machine without a network gets one sentence, and a program the reports.
func TestCheck_Offline(t *testing.T) {
	noName := func(context.Context) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "bhd.example", IsNotFound: true}}
	}
	out, progress, _, err := checkWith(t, noName, false)
	if exit.Code(err) != exit.Unavailable || out != "" || strings.Count(progress, "\n") != len(enabledSources()) {
		t.Errorf("%v\n%s\n%s", err, out, progress)
	}
	want := fmt.Sprintf("no source can be reached from this machine (%d tried), which says nothing about their sites; check its network, DNS and firewall. ", len(enabledSources()))
	if !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "no such host") || strings.Contains(err.Error(), "robots") {
		t.Error(err)
	}
	out, _, _, err = checkWith(t, noName, true, "bhd-site", "qik-site")
	var first sourceReport
	if readErr := json.NewDecoder(strings.NewReader(out)).Decode(&first); readErr != nil || first.Verdict != unreachable || first.Evidence != "reported" || exit.Code(err) != exit.Unavailable {
		t.Errorf("%+v, %v, %v", first, readErr, err)
	}
}

// Sites that never answer do not make a check longer than a minute.
func TestCheck_EndsWithinAMinute(t *testing.T) {
	out, progress, took, err := checkWith(t, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, false)
	if took > time.Minute || exit.Code(err) != exit.Unavailable || strings.Count(progress, ": unreachable, timeout, 0 rates\n") != len(enabledSources()) {
		t.Errorf("after %v: %v\n%s\n%s", took, err, out, progress)
	}
}

func enabledSources() []*source.Definition {
	all, _ := selectDefinitions(source.DefaultSet(), nil)
	return slices.DeleteFunc(all, func(d *source.Definition) bool { return d.SecretNames() != nil }) // no file has a secret here
}

func TestCheck_Verdicts(t *testing.T) {
	for _, c := range []struct {
		kind            source.FailureKind
		accepted, rates int
		want            verdict
	}{
		{"", 2, 2, fine}, {"", 2, 3, partial}, {source.Layout, 2, 2, partial}, {source.Implausible, 0, 1, changed},
		{source.Layout, 0, 0, changed}, {source.Value, 0, 0, changed}, {source.WrongContent, 0, 0, changed},
		{source.Empty, 0, 0, noPrices}, {source.Blocked, 0, 0, blocked}, {source.Internal, 0, 0, failed},
		{source.Network, 0, 0, unreachable}, {source.Timeout, 0, 0, unreachable}, {source.TLS, 0, 0, unreachable}, {source.HTTPStatus, 0, 0, unreachable},
	} {
		var failure *source.Failure
		if c.kind != "" {
			failure = source.Failf(c.kind, "x")
		}
		if got := verdictOf(failure, c.accepted, c.rates); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// The exit code counts what was asked for, and never becomes another code.
func TestCheck_ExitCode(t *testing.T) {
	reports := func(n int, evidence string, v verdict) []sourceReport {
		all := make([]sourceReport, n)
		for i := range all {
			all[i] = sourceReport{SourceRun: admin.SourceRun{Source: fmt.Sprint("s", i)}, Verdict: v, Evidence: evidence}
		}
		return all
	}
	for _, c := range []struct {
		reports       []sourceReport
		onlyConfirmed bool
		want          int
	}{
		{nil, true, exit.OK}, {reports(3, "confirmed", fine), true, exit.OK}, {reports(3, "reported", changed), true, exit.OK},
		{reports(3, "reported", changed), false, 3}, {append(reports(3, "reported", changed), reports(2, "confirmed", partial)...), true, 2},
		{reports(64, "confirmed", blocked), true, 60}, {reports(500, "", failed), false, 60},
	} {
		if err := conclusion(c.reports, c.onlyConfirmed); exit.Code(err) != c.want {
			t.Errorf("%d reports: %v, code %d, want %d", len(c.reports), err, exit.Code(err), c.want)
		}
	}
}

// TestCheck_FirstDay: the table says what the rates of a source do while it fails, and what to type next.
func TestCheck_FirstDay(t *testing.T) {
	find := func(id string) *source.Definition { d, _ := source.DefaultSet().Find(id); return d }
	rate := []admin.SourceRate{{InstitutionID: "bhd", Currency: "USD", Buy: "58.10", Kind: "commercial"}}
	report := func(id string, v verdict, rates []admin.SourceRate) sourceReport {
		return sourceReport{SourceRun: admin.SourceRun{Source: id, Rates: rates}, Verdict: v}
	}
	definitions := []*source.Definition{find("bhd-site"), find("infodolar"), find("popular-site"), find("bcrd-usd"), find("qik-site")}
	reports := []sourceReport{
		report("bhd-site", changed, nil), report("infodolar", partial, rate), report("popular-site", blocked, nil),
		report("bcrd-usd", changed, nil), report("qik-site", fine, nil),
	}
	advise(reports, definitions)
	for i, want := range [][2]string{
		{"infodolar stands in", "tasard sources suggest bhd-site --data DIR"},
		{"those that no other source gives are stale 26h after they were last read", "tasard definitions show infodolar"},
		{"stale 26h after they were last read", "save the page in a browser, then: tasard import --data DIR --source popular-site FILE"},
		{"stale 98h after they were last read", "tasard definitions show bcrd-usd"},
		{"", ""},
	} {
		if s := reports[i]; s.Meanwhile != want[0] || s.Next != want[1] {
			t.Errorf("%s: %q, %q; want %q", s.Source, s.Meanwhile, s.Next, want)
		}
	}
}

// TestSources_Why wants the table to say why a source is as it is now: with the cause, which stands at the end of a
// long reason, and not with what it has recovered from.
func TestSources_Why(t *testing.T) {
	now := time.Date(2026, 6, 30, 15, 0, 0, 0, time.UTC)
	earlier := now.Add(-time.Hour)
	network := func(at time.Time) *admin.SourceFailure {
		return &admin.SourceFailure{Kind: string(source.Network), Detail: "ask", At: at}
	}
	for name, test := range map[string]struct {
		state  collectors.State
		health *admin.SourceHealth
		want   string
	}{
		"no node":            {node.SourceOff, nil, ""},
		"well":               {collectors.OK, &admin.SourceHealth{Runs: 2, LastTry: now, Failure: network(earlier)}, ""},
		"fails":              {collectors.Failing, &admin.SourceHealth{Runs: 1, LastTry: earlier, Failure: network(now)}, "network: ask"},
		"tried again":        {collectors.Failing, &admin.SourceHealth{Runs: 1, LastTry: now, Running: now, Failure: network(earlier)}, "network: ask"},
		"partly quarantined": {collectors.Partial, &admin.SourceHealth{Runs: 2, LastTry: now, Read: 5, Quarantined: 2, Failure: network(earlier)}, "2 of 5 quarantined: tasard admin quarantine list --source x-site"},
		"frozen":             {collectors.OK, &admin.SourceHealth{Runs: 2, Frozen: true, UnchangedSince: earlier, UnchangedLimitHours: 240}, "unchanged since 2026-06-30T14:00:00Z; the limit is 10 days"},
		"degraded":           {collectors.Degraded, &admin.SourceHealth{Runs: 2, LastTry: now, Failure: network(earlier), Missing: []string{"sell of a", "sell of b"}}, "sell of a (and 1 more)"},
		"degraded before":    {collectors.Never, &admin.SourceHealth{LastSlot: earlier, Missing: []string{"sell of a"}}, "sell of a"},
		"first try":          {collectors.Never, &admin.SourceHealth{Running: now}, "is being read since 2026-06-30T15:00:00Z"},
		"read before":        {collectors.Never, &admin.SourceHealth{LastSlot: earlier}, "read before the start, for the slot of 2026-06-30T14:00:00Z"},
		"never":              {collectors.Never, &admin.SourceHealth{}, ""},
	} {
		if got := reasonOf(&admin.Source{ID: "x-site", State: string(test.state), Health: test.health}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	long := "network: ask for robots.txt before anything else: dial: connect: no route to host"
	if got := shortenMiddle(long, 40); got != "network: ask for ro…ct: no route to host" {
		t.Errorf("shortened to %q", got)
	}
}

// TestSuggest_FromArchive repairs the definition of a page that was redesigned, with the documents of the archive.
func TestSuggest_FromArchive(t *testing.T) {
	now := time.Date(2026, 9, 21, 16, 0, 0, 0, time.UTC)
	market := simulated.NewMarket(1)
	data := t.TempDir()
	site, dir := simulated.NewSite(market), command.ArchiveDir(data)
	kept := archive.New(archive.Config{Dir: dir, Clock: func() time.Time { return now }})
	for _, fault := range []simulated.Fault{"", simulated.Layout} {
		market.Step(now)
		if err := site.SetFault("bdi-site", fault); err != nil {
			t.Fatal(err)
		}
		doc := *site.Document("bdi-site", 0)
		doc.FetchedAt = now
		kept.Keep("bdi-site", 0, &doc)
		now = now.Add(4 * time.Hour)
	}
	var stdout, stderr bytes.Buffer
	p := &process.Process{Stdout: &stdout, Stderr: &stderr, Clock: func() time.Time { return now }}
	o := &suggestOptions{}
	o.Config.Dir = data
	if err := o.run(t.Context(), p, []string{"bdi-site"}); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	for _, want := range []string{"document: ", "known prices: of ", "USD buy ", "EUR sell ", "side by the known price"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("standard error lacks %q:\n%s", want, stderr.String())
		}
	}
	d, err := source.ReadDefinition("bdi-site.json", stdout.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	result, err := d.Parse(0, site.Document("bdi-site", 0))
	if err != nil || len(result.Observations) != 2 {
		t.Errorf("read %+v, %v", result.Observations, err)
	}
}

func TestSuggest_Refuses(t *testing.T) {
	page := `<table><tr><th>Moneda</th><th>A</th><th>B</th></tr><tr><td>Dólar</td><td>58.10</td><td>60.10</td></tr></table>`
	for name, c := range map[string]struct {
		known []string
		args  []string
		code  int
		text  string
	}{
		"a side without a word":   {nil, []string{"bdi-site", "-"}, exit.NothingFound, "give the prices that are known"},
		"no document":             {nil, []string{"bdi-site"}, exit.Usage, "name a FILE"},
		"an unknown source":       {nil, []string{"bdi-sitio", "-"}, exit.Usage, "bdi-site"},
		"a price that is not one": {[]string{"USD=58,10/60"}, []string{"bdi-site", "-"}, exit.Usage, "want a currency and its prices"},
		"no currency":             {[]string{"58.10/60.10"}, []string{"bdi-site", "-"}, exit.Usage, "want a currency and its prices"},
	} {
		var stdout, stderr bytes.Buffer
		p := &process.Process{Stdin: strings.NewReader(page), Stdout: &stdout, Stderr: &stderr, Clock: func() time.Time { return time.Unix(1e9, 0) }}
		o := &suggestOptions{known: c.known}
		if err := o.run(t.Context(), p, c.args); exit.Code(err) != c.code || !strings.Contains(err.Error(), c.text) || stdout.Len() > 0 {
			t.Errorf("%s: %v, printed %q; want %d and %q", name, err, stdout.String(), c.code, c.text)
		}
	}
}
