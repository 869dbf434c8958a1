package cmd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

// collectArgs are the arguments of a node that collects at once.
func collectArgs(data string, more ...string) []string {
	args := []string{"serve", "--listen", "127.0.0.1:0", "--data", data, "--log-format", "text", "--limits", "off"}
	return append(args, more...)
}

// listedSources is what tasard sources list says of a running node, by id.
func listedSources(t *testing.T, data string) map[string]admin.Source {
	t.Helper()
	shown := asJSON[admin.Sources](t, mustRun(t, "sources", "list", "--json", "--data", data))
	by := map[string]admin.Source{}
	for _, one := range shown.Sources {
		by[one.ID] = one
	}
	return by
}

// collected waits until every collected source was fetched, by this node or an earlier one.
func collected(t *testing.T, p *program, data string) map[string]admin.Source {
	t.Helper()
	looks := time.NewTicker(100 * time.Millisecond) // each look costs the node something
	defer looks.Stop()
	clock := clockFrom("now")
	for end := clock().Add(patience); clock().Before(end) && !p.Exited(); <-looks.C {
		by, waiting := listedSources(t, data), 0
		for _, one := range by {
			if one.Health == nil || one.State == string(collectors.Never) && one.Health.LastSlot.IsZero() {
				waiting++
			}
		}
		if waiting == 0 {
			return by
		}
	}
	t.Fatalf("the sources are not collected:\n%s", p.Output())
	return nil
}

// TestServe_Collects wants a node to fetch and read every source, to publish what they say, to tell how they are, and
// after a kill not to ask again for the slot that it has, nor to forget what the sources usually give.
func TestServe_Collects(t *testing.T) {
	t.Parallel()
	site := []string{withSite + "=" + "7,banesco-site=challenge,vimenca-site=zeros,lafise-site=lost-decimal"}
	data := t.TempDir()
	p := startWith(t, realNow, site, collectArgs(data)...).listening()
	by := collected(t, p, data)
	for id, want := range map[string]collectors.State{
		"bhd-site": collectors.OK, "bcrd-usd": collectors.OK, "infodolar": collectors.OK, "banesco-site": collectors.Failing,
		"vimenca-site": collectors.Failing, "jmmb-site": collectors.Disabled, "lafise-site": collectors.Quarantined,
	} {
		if got := by[id]; got.State != string(want) {
			t.Errorf("%s is %s, want %s: %+v", id, got.State, want, got.Health.Failure)
		}
	}
	if failure := by["banesco-site"].Health.Failure; failure == nil || failure.Kind != string(source.Blocked) {
		t.Errorf("a challenge page is %+v", failure)
	}
	if rate := rateOf(t, p, "USD", "bhd"); rate == nil || rate.SourceID != "bhd-site" {
		t.Errorf("published: %+v", rate)
	}
	if rate := rateOf(t, p, "USD", "banesco"); rate == nil || rate.SourceID != "infodolar" {
		t.Errorf("a source that is blocked is not replaced: %+v", rate)
	}
	failing := map[string]string{}
	for _, one := range asJSON[admin.Readiness](t, askSocket(t, data, admin.ReadyzPath)).FailingSources {
		failing[one.ID] = one.State
	}
	for id, want := range map[string]string{"banesco-site": "failing", "lafise-site": "quarantined", "bhd-site": ""} {
		if failing[id] != want {
			t.Errorf("%s is %q at the management socket, want %q", id, failing[id], want)
		}
	}
	checkMetrics(t, data)
	learnt := by["bhd-site"].Health.Quotes
	p.signal(os.Kill)

	again := startWith(t, realNow, site, collectArgs(data)...).listening()
	by = collected(t, again, data)
	if got := by["bhd-site"].Health.Quotes; len(got) == 0 || got[0].Buy.Runs != 1 || !reflect.DeepEqual(got, learnt) {
		t.Errorf("what the source usually gives is %+v after a kill, was %+v", got, learnt)
	}
	if h := by["bhd-site"].Health; h.Runs != 0 || h.LastSlot.IsZero() {
		t.Errorf("after a kill the slot is collected again: %+v", h)
	}
	if h := by["banesco-site"].Health; h.Runs == 0 {
		t.Errorf("a source that gave nothing is not asked again: %+v", h)
	}
	again.signal(syscall.SIGTERM)
	if times := slotsIn(t, data); times["bhd-site USD"] != 1 || times["infodolar USD"] != 1 {
		t.Errorf("the slot is in the log: %v", times)
	}
}

// checkMetrics wants the numbers of TestServe_Collects in the text for Prometheus, and beside them nothing but the
// runtime's.
func checkMetrics(t *testing.T, data string) {
	t.Helper()
	all := askSocket(t, data, admin.MetricsPath)
	for _, want := range []string{
		`tasard_source_up{source="bhd-site"} 1`, `tasard_source_up{source="banesco-site"} 0`,
		`tasard_source_failures_total{kind="blocked",source="banesco-site"} 1`,
		`tasard_source_consecutive_failures{source="banesco-site"} 1`,
		`tasard_source_observations{outcome="accepted",source="bhd-site"} 2`,
		`tasard_source_last_success_timestamp_seconds{source="bhd-site"} 1.78`,
		"\ngo_memstats_mallocs_total ", "\ngo_goroutines ",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in\n%s", want, all)
		}
	}
	if problems, err := promlint.New(strings.NewReader(all)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("Prometheus finds fault with it: %v, %v", problems, err)
	}
	for line := range strings.Lines(all) {
		if !regexp.MustCompile("^(# |tasard_|go_|process_)").MatchString(line) {
			t.Errorf("not ours: %s", line)
		}
	}
}

// slotsIn counts for each source and currency the events of one slot in the log.
func slotsIn(t *testing.T, data string) map[string]int {
	t.Helper()
	times, seen := map[string]int{}, map[string]int{}
	for line := range strings.Lines(mustRun(t, "log", "dump", "--data", data)) {
		event := asJSON[struct {
			Event struct{ SourceID, Currency, Slot string }
		}](t, line).Event
		if event.Slot == "" {
			continue
		}
		key := event.SourceID + " " + event.Currency
		seen[key+event.Slot]++
		times[key] = max(times[key], seen[key+event.Slot])
	}
	return times
}

// TestServe_StopsWhileCollecting wants a stop to wait for no site that hangs, and to be orderly all the same.
func TestServe_StopsWhileCollecting(t *testing.T) {
	t.Parallel()
	site := []string{withSite + "=" + "3,bhd-site=hang,apap-site=hang"}
	data := t.TempDir()
	p := startWith(t, realNow, site, collectArgs(data, "--log-level", "debug")...).listening()
	p.Await(`"source collected" source=qik-site`)
	clock := clockFrom("now")
	began := clock()
	p.stop(syscall.SIGTERM)
	p.Await("stopped")
	if took := clock().Sub(began); took > 10*time.Second { // a request to a site may take twelve
		t.Errorf("the stop took %s", took)
	}
	mustRun(t, "log", "verify", "--data", data)
	if times := slotsIn(t, data); times["bhd-site USD"] != 0 || times["qik-site USD"] != 1 {
		t.Errorf("the slot is in the log: %v", times)
	}
}

// TestSources_Check wants the rates of named sources, and code 0.
func TestSources_Check(t *testing.T) {
	t.Parallel()
	site := []string{withSite + "=" + "7"}
	p := startWith(t, realNow, site, "sources", "check", "bhd-site", "bhd-site", "infodolar", "--collect-contact", "ana@example.com")
	if code := p.AwaitExit(); code != exit.OK {
		t.Errorf("exit code %d:\n%s", code, p.Output())
	}
	for _, part := range []string{"2 of 2: ", "bhd-site: ok, 2 rates", "bhd-site: 2 rates", "  INSTITUTION", "bhd", "infodolar: "} {
		p.Await(part)
	}
}

// TestSources_CheckAll wants a table that says what to do about each of many faults, and the number of confirmed
// sources that are not ok as the exit code.
func TestSources_CheckAll(t *testing.T) {
	t.Parallel()
	site := []string{withSite + "=" + "7,bdi-site=layout,banesco-site=challenge,apap-site=not-available," +
		"lafise-site=half,qik-site=forbidden,quezada-site=error-page,vimenca-site=zeros,bcrd-reference=layout,bhd-site=lost-decimal,union-site=swapped"}
	p := startWith(t, realNow, site, "sources", "check")
	if code := p.AwaitExit(); code != 2 {
		t.Errorf("exit code %d, want 2:\n%s", code, p.Output())
	}
	for id, want := range map[string]string{
		"bdi-site":       `changed .* there is no date at ".modal-footer p"`,
		"banesco-site":   `blocked .*challenge`,
		"apap-site":      `empty .*all 4 values are zero or not available`,
		"union-site":     `changed +reported +1 +.*refused: union USD: crossed: `,
		"lafise-site":    `changed .*JSON`,
		"qik-site":       `blocked .*forbids`,
		"quezada-site":   `changed `,
		"vimenca-site":   `empty +confirmed `,
		"bcrd-reference": `changed +confirmed .*want "true" at "success", found nothing`,
		"bhd-site":       `changed +reported +2 +.*refused: bhd USD: out_of_band: .*; and 1 more$`,
		"popular-site":   `ok +reported +2 +-[ -]*$`,
		"infodolar":      `ok +reported +`,
	} {
		line := regexp.MustCompile("(?m)^" + id + " +.*$").FindString(p.Output())
		if !regexp.MustCompile("^" + id + " +" + want).MatchString(line) {
			t.Errorf("%s: got %q, want %s", id, line, want)
		}
	}
	last := p.Await("tasard sources check: 2 of ")
	if !regexp.MustCompile(`2 of \d+ sources not ok: bcrd-reference, vimenca-site; not counted, because not confirmed: apap-site, .*, union-site$`).MatchString(last) {
		t.Error(last)
	}
}

// TestSources_CheckInterrupted wants an interrupted check to count what was checked, not what was begun.
func TestSources_CheckInterrupted(t *testing.T) {
	t.Parallel()
	site := []string{withSite + "=" + "7,apap-site=hang"}
	p := startWith(t, realNow, site, "sources", "check", "apap-site", "bhd-site")
	p.Await("1 of 2: bhd-site: ok, 2 rates")
	if code := p.signal(os.Interrupt); code != exit.Interrupted {
		t.Errorf("exit code %d:\n%s", code, p.Output())
	}
	p.Await("tasard sources check: interrupted when 1 of 2 sources were checked")
}

// lafisePage is a document of lafise-site, made up after its shape.
const lafisePage = `{"date":"2026-06-30","rates":{"USD":{"buying":58.10,"selling":61.40},"EUR":{"buying":66.5,"selling":70.25}}}`

// TestSources_Parse wants what a document would give, whole as JSON, and code 66 with the reason for one that gives
// nothing.
func TestSources_Parse(t *testing.T) {
	file := writeFile(t, "rates.json", lafisePage)
	table := mustRun(t, "sources", "parse", "lafise-site", file)
	for _, part := range []string{"lafise-site: 2 rates\n", "lafise       USD       unspecified  commercial  58.10  61.40  2026-06-30"} {
		if !strings.Contains(table, part) {
			t.Errorf("no %q in\n%s", part, table)
		}
	}
	got := run(t, nil, strings.NewReader(lafisePage), "sources", "parse", "lafise-site", "-", "--json")
	if read := asJSON[struct {
		Pages []struct{ Digest string }
		Rates []struct{ Kind engine.Kind }
	}](t, got.stdout); len(read.Rates) != 2 || read.Rates[0].Kind != engine.Commercial || len(read.Pages[0].Digest) != 64 {
		t.Errorf("as JSON %+v", read)
	}
	run(t, nil, strings.NewReader(`{"date":"2026-06-30"}`), "sources", "parse", "lafise-site", "-").fails(t, exit.NoInput, "- is not a document of lafise-site: layout: ")
}

// TestSources_OperatorsDirectory wants an operator's definitions to mend the program's, in every command.
func TestSources_OperatorsDirectory(t *testing.T) {
	directory := t.TempDir()
	for name, text := range map[string]string{
		"bhd.json": `{"id": "bhd-site", "disabled": "asks for a password"}`, "qik.json": `{"id": "qik-site", "priority": 42}`,
	} {
		noError(t, os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600))
	}
	table := mustRun(t, "sources", "list", "--sources", directory)
	if !strings.HasPrefix(table, "No node is running") || !strings.Contains(table, "asks for a password") {
		t.Errorf("listed as\n%s", table)
	}
	data := t.TempDir()
	p := startNode(t, data, "--sources", directory)
	by := listedSources(t, data)
	p.signal(os.Kill)
	if table := mustRun(t, "sources", "list", "--data", data); !strings.HasPrefix(table, "No node is running; ") {
		t.Errorf("after a kill, which leaves the socket:\n%s", table)
	}
	if table := mustRun(t, "sources", "list", "--data", data+"/typo"); !strings.HasPrefix(table, "No node is running ("+data+"/typo is not a data directory)") {
		t.Errorf("a directory that is none:\n%s", table)
	}
	if by["bhd-site"].State != string(collectors.Disabled) || by["qik-site"].Priority != 42 || by["qik-site"].State != node.SourceOff {
		t.Errorf("%+v\n%+v", by["bhd-site"], by["qik-site"])
	}
}

// simulate leads the program to simulated institutions at their real addresses, over HTTPS; they end with it.
func (p *commands) simulate(wish string) {
	words := strings.Split(wish, ",")
	seed, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		panic(err)
	}
	market := simulated.NewMarket(seed)
	market.Step(p.Clock())
	site := simulated.NewSite(market)
	for _, word := range words[1:] {
		id, fault, _ := strings.Cut(word, "=")
		if err := site.SetFault(id, simulated.Fault(fault)); err != nil {
			panic(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	signer := newAuthority()
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		certificate := signer.newCertificate(func(server *x509.Certificate) { server.DNSNames = []string{hello.ServerName} })
		return &certificate, nil
	}}
	go func() {
		_ = (&http.Server{Handler: site, ReadHeaderTimeout: patience}).Serve(tls.NewListener(listener, config))
	}()
	p.Roots = x509.NewCertPool()
	p.Roots.AppendCertsFromPEM([]byte(signer.pem))
	p.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, listener.Addr().String())
	}
}
