package cmd

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// rateOf is the published rate of a quote, nil when there is none.
func rateOf(t *testing.T, p *program, currency, institution string) *publishedRate {
	t.Helper()
	var page struct{ Data []publishedRate }
	if err := json.Unmarshal([]byte(p.mustGet("/v1/rates?currency="+currency+"&institution="+institution)), &page); err != nil {
		t.Fatal(err)
	}
	if len(page.Data) == 0 {
		return nil
	}
	return &page.Data[0]
}

// publishedRate is what the tests look at in a rate.
type publishedRate struct {
	Buy, Sell, SourceID, ExpiresAt string
	LastCheckedAt                  time.Time
	Manual, Stale                  bool
}

// byOf are the authors of all events of a kind in the log.
func byOf(t *testing.T, data, event string) []string {
	t.Helper()
	var by []string
	for line := range strings.Lines(mustRun(t, "log", "dump", "--data", data)) {
		record := asJSON[struct {
			Event struct{ Event, By string }
		}](t, line).Event
		if record.Event == event {
			by = append(by, record.By)
		}
	}
	return by
}

// heldNode is a node whose quarantine holds a tenfold value, USD/1, and a zero, USD/2.
func heldNode(t *testing.T, data string) *program {
	t.Helper()
	p := startWithLines(t, data, observation(1, "59", "60"), observation(2, "65", "66"), observation(3, "0", "60"))
	return p
}

// TestI3_QuarantineCommands wants held values to be listed with what is known of them, released and rejected by an operator, with
// his name in the log, and what is no rate never to be released.
func TestI3_QuarantineCommands(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := heldNode(t, data)
	table := operate(t, data, "quarantine", "list")
	for _, part := range []string{"NUMBER  WHEN", "USD/1   2026-06-30T14:02:00Z  popular-site  popular      unspecified  commercial  65   66", "jump", "USD/2", "zero"} {
		if !strings.Contains(table, part) {
			t.Errorf("no %q in\n%s", part, table)
		}
	}
	if got := operate(t, data, "quarantine", "list", "--currency", "EUR"); got != "Nothing is held back.\n" {
		t.Errorf("of EUR: %q", got)
	}
	if got := operate(t, data, "quarantine", "list", "--source", "infodolar"); got != "Nothing is held back.\n" {
		t.Errorf("of another source: %q", got)
	}
	whole := strings.Split(operate(t, data, "quarantine", "list", "--json", "--source", "popular-site"), "\n")
	if one := asJSON[admin.Held](t, whole[0]); one.Number != "USD/1" || one.Reason != engine.Jump || one.Buy != "65" || one.Channel != engine.Unspecified {
		t.Errorf("as JSON %+v", one)
	}

	run(t, nil, nil, "admin", "quarantine", "release", "USD/2", "--data", data).fails(t, exit.Usage, "number 2 of the quarantine can't be released")
	if rate := rateOf(t, p, "USD", "popular"); rate.Buy != "59" {
		t.Errorf("before the release %+v", rate)
	}
	released := operate(t, data, "quarantine", "release", "USD/1", "--by", "Ana Gil")
	if !strings.HasPrefix(released, "USD/1 is released by Ana Gil ("+osUser(t)+"): popular:USD:unspecified:commercial, 65 / 66, of popular-site.\nPublished now: 65 / 66") {
		t.Errorf("released: %q", released)
	}
	if rate := rateOf(t, p, "USD", "popular"); rate.Buy != "65" {
		t.Errorf("after the release %+v", rate)
	}
	if rejected := asJSON[admin.Verdict](t, operate(t, data, "quarantine", "reject", "USD/2", "--json")); rejected.Held.Number != "USD/2" || rejected.By != osUser(t) {
		t.Errorf("rejected %+v", rejected)
	}
	p.signal(os.Kill)
	p = startNode(t, data)
	if got := operate(t, data, "quarantine", "list"); got != "Nothing is held back.\n" {
		t.Errorf("after a restart: %q", got)
	}
	p.signal(syscall.SIGTERM)
	if by := byOf(t, data, "released"); len(by) != 1 || by[0] != "Ana Gil ("+osUser(t)+")" {
		t.Errorf("released by %q", by)
	}
	if by := byOf(t, data, "rejected"); len(by) != 1 || by[0] != osUser(t) {
		t.Errorf("rejected by %q", by)
	}
}

// TestS11_ManualRates wants a rate that an operator types to win until it is withdrawn, and the collected one back then.
func TestS11_ManualRates(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := heldNode(t, data)
	set := operate(t, data, "rates", "set", "popular", "USD", "--buy", "58.10", "--sell", "59.30", "--for", "6h", "--by", "ana")
	if !strings.HasPrefix(set, "popular:USD:unspecified:commercial is set by ana ("+osUser(t)+").\nPublished now: 58.10 / 59.30 of manual, until 2026-06-30T21:") {
		t.Errorf("set: %q", set)
	}
	if rate := rateOf(t, p, "USD", "popular"); rate.Buy != "58.10" || !rate.Manual || rate.SourceID != admin.ManualSource {
		t.Errorf("published %+v", rate)
	}
	operate(t, data, "rates", "set", "vega-real", "USD", "--sell", "60.00")
	if rate := rateOf(t, p, "USD", "vega-real"); rate == nil || rate.Buy != "" || rate.Sell != "60.00" || !strings.HasPrefix(rate.ExpiresAt, "2026-07-01T15:") {
		t.Errorf("one side for 24 hours: %+v", rate)
	}
	p.signal(os.Kill)
	p = startNode(t, data)
	if rate := rateOf(t, p, "USD", "popular"); rate.SourceID != admin.ManualSource {
		t.Errorf("after a kill %+v", rate)
	}
	withdrawn := asJSON[admin.RateChange](t, operate(t, data, "rates", "withdraw", "popular", "USD", "--json", "--by", "ana"))
	if withdrawn.Published == nil || withdrawn.Published.SourceID != "popular-site" || withdrawn.Published.Buy != "59" {
		t.Errorf("withdrawn: %+v", withdrawn)
	}
	if got := operate(t, data, "rates", "withdraw", "vega-real", "USD"); !strings.HasSuffix(got, "Nothing is published for it now.\n") {
		t.Errorf("withdrawn: %q", got)
	}
	p.signal(syscall.SIGTERM)
	if by := byOf(t, data, "withdrawn"); len(by) != 2 || by[0] != "ana ("+osUser(t)+")" {
		t.Errorf("withdrawn by %q", by)
	}
	if by := byOf(t, data, "refreshed"); !slices.Contains(by, "ana ("+osUser(t)+")") {
		t.Errorf("set by %q", by)
	}
}

// TestI3_ManualRateIsHeld wants the rules to hold for operators too, the answer to say how to go on, and that to work.
func TestI3_ManualRateIsHeld(t *testing.T) {
	data := t.TempDir()
	p := heldNode(t, data)
	got := run(t, nil, nil, "admin", "rates", "set", "popular", "USD", "--buy", "5.81", "--sell", "5.93", "--data", data)
	if got.code != exit.BadLines || !strings.HasPrefix(got.stdout, "Published now: 59 / 60 of popular-site") {
		t.Errorf("exit code %d, %q", got.code, got.stdout)
	}
	oneLine(t, got.stderr, "popular:USD:unspecified:commercial is held back as USD/3: out_of_band: ",
		"tasard admin quarantine release USD/3 --data "+data)
	operate(t, data, "quarantine", "release", "USD/3")
	if rate := rateOf(t, p, "USD", "popular"); rate.Buy != "5.81" || !rate.Manual {
		t.Errorf("after the release %+v", rate)
	}
}
