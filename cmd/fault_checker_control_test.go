//go:build faults

package cmd

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// controlSetup is a small checker, and the answers of its nodes. A single node has an account that may send 1,000
// requests a day and has spent 100 + 3, with an active and a revoked key, and a series of which 5 is acknowledged and
// 6 was not answered. In a cluster the account has 3 a minute and 5 a day and no key, and node 1 has acknowledged
// three values.
type controlSetup struct {
	l          *checker
	a          *trackedAccount
	good, gone *accountKey
	s          *series
	at         [2]*endpoint
	says       [2]*fakeNode
}

// seconds returns the interval from one second to another.
func seconds(from, to int) interval {
	return interval{time.Duration(from) * time.Second, time.Duration(to) * time.Second}
}

func newControlSetup(t *testing.T, single bool) *controlSetup {
	t.Helper()
	p := &controlSetup{l: newChecker(limits{}), s: &series{institution: "popular"}, says: [2]*fakeNode{newFakeNode(), newFakeNode()}}
	quota, values := limits{day: 5, minute: 3}, 3
	if single {
		quota, values = limits{day: 1000, minute: 60, lease: 16}, 6
		p.l = newChecker(quota)
		p.l.auditor = "auditor"
	}
	p.l.startedAt = p.l.startedAt.Add(-time.Hour)
	p.a, p.l.series = p.l.newAccount("ana@example.com", quota.day, quota.minute), []*series{p.s}
	for i := range p.at {
		server := httptest.NewServer(p.says[i])
		t.Cleanup(server.Close)
		p.at[i] = &endpoint{number: i + 1, url: server.URL, admin: httpClientTo(server.Listener.Addr().Network(), server.Listener.Addr().String())}
		t.Cleanup(p.at[i].admin.close)
	}
	for i := range values {
		p.s.values = append(p.s.values, &seriesValue{interval: seconds(10*i, 10*i+5), by: p.at[0], outcome: acknowledged, decided: true})
	}
	p.good = &accountKey{name: "good", id: "good", secret: "good", outcome: acknowledged, touched: true}
	p.gone = &accountKey{name: "gone", id: "gone", secret: "gone", outcome: acknowledged, asked: 1, revoked: p.at[0], touched: true}
	if single {
		p.s.values[5].outcome, p.s.values[5].decided = unknown, false
		p.a.keys = []*accountKey{p.good, p.gone}
		p.a.spentAtStart, p.a.admitted, p.a.touched = 100, 3, true
	}
	return p
}

// fakeNode is a node at rest with given answers to a check.
type fakeNode struct {
	remaining          int
	keys, rate, row    string
	goodCode, goneCode int
	suspendedAt        string
}

func newFakeNode() *fakeNode {
	return &fakeNode{
		remaining: 897, keys: keyText("good", "active") + "," + keyText("gone", "revoked"), rate: rateText(5), row: rateText(5),
		goodCode: 200, goneCode: 401,
	}
}

func keyText(name, status string) string {
	return fmt.Sprintf(`{"id":%q,"name":%q,"status":%q}`, name, name, status)
}

func rateText(number int) string {
	return fmt.Sprintf(`{"institutionId":"popular","sourceId":"manual","buy":%q}`, valueOf(number))
}

// ServeHTTP answers as a node does.
func (n *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text := "{}"
	switch code := map[string]int{"Bearer good": n.goodCode, "Bearer gone": n.goneCode}[r.Header.Get("Authorization")]; {
	case code >= 400:
		w.WriteHeader(code)
		text = `{"error":{"code":"some"}}`
	case r.URL.Path == "/v1/account/usage":
		end := time.Now()
		for engine.DateOf(end) == engine.DateOf(time.Now()) {
			end = end.Add(time.Minute)
		}
		text = fmt.Sprintf(`{"data":{"day":{"limit":1000,"remaining":%d,"resetAt":%q}}}`, n.remaining, end.Truncate(time.Minute).Format(time.RFC3339))
	case r.URL.Path == "/v1/account/keys":
		text = `{"data":[` + n.keys + `]}`
	case r.URL.Path == "/v1/rates/history":
		text = `{"data":[` + n.row + `]}`
	case r.URL.Path == "/v1/rates":
		text = `{"data":[` + n.rate + `]}`
	case r.URL.Path == "/accounts/1": // there is none by number
		w.WriteHeader(http.StatusNotFound)
		text = `{"error":{"code":"not_found"}}`
	case n.suspendedAt != "" && strings.HasPrefix(r.URL.Path, "/accounts/"):
		text = `{"suspendedAt":"` + n.suspendedAt + `"}`
	}
	_, _ = w.Write([]byte(text)) // a truncated answer is noticed by the caller
}

// answerOf makes an answer of a node, with the Remaining of the day.
func answerOf(status, remaining int, code string, number int) *answer {
	header := http.Header{}
	header.Set("X-RateLimit-Limit", "1000")
	header.Set("X-RateLimit-Remaining", fmt.Sprint(remaining))
	header.Set("X-RateLimit-Reset", "1")
	sent := &atomic.Int32{}
	sent.Store(1)
	return &answer{status: status, code: code, header: header, body: `{"data":[` + rateText(number) + `]}`, sent: sent}
}

// ask records one request to a node and its answer.
func (p *controlSetup) ask(m *endpoint, key *accountKey, got *answer) {
	r := &request{by: p.a, key: key, want: p.s, at: m, view: newClientView()}
	p.l.beforeRequest(r)
	p.l.afterRequest(r, got, nil)
}

// show has one client see values, in order, which it requested from a node after a time.
func (p *controlSetup) show(m *endpoint, from time.Duration, numbers ...int) {
	r := &request{want: p.s, at: m, view: newClientView(), from: from}
	for _, number := range numbers {
		p.l.checkPage(r, &page{Data: []struct{ InstitutionID, SourceID, Buy string }{{Buy: valueOf(number)}}})
	}
}

// controlCase is what is planted, and the violation that it is; "" if there is none.
type controlCase struct {
	want  violation
	plant func(p *controlSetup)
}

// answersUnderLoad are answers of one node to requests.
func answersUnderLoad() map[string]controlCase {
	one := func(status, remaining int, code string, number int) func(p *controlSetup) {
		return func(p *controlSetup) { p.ask(p.at[0], p.good, answerOf(status, remaining, code, number)) }
	}
	return map[string]controlCase{
		"good answers": {"", func(p *controlSetup) {
			one(200, 999, "", 5)(p)
			one(200, 998, "", 6)(p)
			p.ask(p.at[0], p.gone, answerOf(401, 0, "revoked_key", 0))
		}},
		"a revoked key": {wronglyAccepted, func(p *controlSetup) { p.ask(p.at[0], p.gone, answerOf(200, 999, "", 5)) }},
		"a suspended account": {wronglyAccepted, func(p *controlSetup) {
			p.a.suspended = true
			one(200, 999, "", 5)(p)
		}},
		"Remaining rises": {wentBack, func(p *controlSetup) {
			one(200, 500, "", 5)(p)
			one(200, 500, "", 5)(p)
		}},
		"an older rate":       {wentBack, one(200, 999, "", 4)},
		"a rate from nowhere": {unexplained, one(200, 999, "", 7)},
		"an active key":       {lostWrite, one(401, 0, "invalid_key", 0)},
		"an early end of day": {unexplained, one(429, 0, "quota_exceeded", 0)},
		"an internal error":   {unexplained, one(500, 0, "internal_error", 0)},
		"a busy node":         {"", one(503, 0, "overloaded", 0)},
		"a full disk":         {unexplained, one(503, 0, "read_only", 0)},
		"one more than a day's": {overGranted, func(p *controlSetup) {
			p.a.days[engine.DateOf(time.Now())] = 1000
			one(200, 999, "", 5)(p)
		}},
		"61 in a minute": {overGranted, func(p *controlSetup) {
			for i := range 61 {
				one(200, 999-i, "", 5)(p)
			}
			p.l.checkMinutes(p.a)
		}},
	}
}

// statesAfterStart are states of one node that has just started.
func statesAfterStart() map[string]controlCase {
	// left leaves a Remaining that is too high by more.
	left := func(beyond int) func(p *controlSetup) {
		return func(p *controlSetup) { p.says[0].remaining = 1000 - 103 + beyond }
	}
	keys := func(texts ...string) func(p *controlSetup) {
		return func(p *controlSetup) { p.says[0].keys = strings.Join(texts, ",") }
	}
	leaseOfOne := func(p *controlSetup) { p.l.limits.lease, p.says[0].remaining = 1, 1000-103-1 }
	return map[string]controlCase{
		"nothing":                                 {"", func(*controlSetup) {}},
		"a lease is forfeited":                    {"", left(-100)},
		"what was in flight counts":               {"", func(p *controlSetup) { p.a.inDoubt = 2; left(-18)(p) }},
		"a lease of one, refused while it waited": {"", func(p *controlSetup) { p.a.raced = 1; leaseOfOne(p) }},
		"a lease of one, and nothing waited":      {overForfeited, leaseOfOne},
		"a lease after a stop in order":           {overForfeited, func(p *controlSetup) { p.l.stoppedInOrder = true; left(-1)(p) }},
		"a charge is lost":                        {overGranted, left(1)},
		"more than a lease is gone":               {overForfeited, left(-101)},
		"Remaining has risen":                     {wentBack, func(p *controlSetup) { p.a.remainingMin = 890 }},
		"a key is lost":                           {lostWrite, keys(keyText("gone", "revoked"))},
		"a revocation is lost":                    {lostWrite, keys(keyText("good", "active"), keyText("gone", "active"))},
		"a key ends by itself":                    {lostWrite, keys(keyText("good", "revoked"), keyText("gone", "revoked"))},
		"a key from nowhere":                      {unexplained, keys(keyText("good", "active"), keyText("gone", "revoked"), keyText("other", "active"))},
		"a key twice":                             {unexplained, keys(keyText("good", "active"), keyText("good", "active"), keyText("gone", "revoked"))},
		"a refused key": {unexplained, func(p *controlSetup) {
			p.a.keys = append(p.a.keys, &accountKey{name: "a", outcome: refused})
			keys(keyText("good", "active"), keyText("gone", "revoked"), keyText("a", "active"))(p)
		}},
		"a third key": {wronglyAccepted, func(p *controlSetup) {
			p.a.keys = append(p.a.keys, &accountKey{name: "a", outcome: unknown}, &accountKey{name: "b", outcome: unknown})
			keys(keyText("good", "active"), keyText("gone", "revoked"), keyText("a", "active"), keyText("b", "active"))(p)
		}},
		"a revoked key opens":       {wronglyAccepted, func(p *controlSetup) { p.says[0].goneCode = 200 }},
		"an active key does not":    {lostWrite, func(p *controlSetup) { p.says[0].goodCode = 401 }},
		"a suspension is lost":      {lostWrite, func(p *controlSetup) { p.a.suspended = true }},
		"a suspended account":       {wronglyAccepted, func(p *controlSetup) { p.a.suspended, p.says[0].suspendedAt = true, "2026-06-17T16:00:00Z" }},
		"a rate is lost":            {lostWrite, func(p *controlSetup) { p.says[0].rate = "" }},
		"a rate is older":           {lostWrite, func(p *controlSetup) { p.says[0].rate = rateText(4) }},
		"a row is older":            {lostWrite, func(p *controlSetup) { p.says[0].row = rateText(4) }},
		"rate and row do not fit":   {lostWrite, func(p *controlSetup) { p.says[0].rate = rateText(6) }},
		"a rate without an answer":  {"", func(p *controlSetup) { p.says[0].rate, p.says[0].row = rateText(6), rateText(6) }},
		"a rate that was never set": {unexplained, func(p *controlSetup) { p.says[0].rate = rateText(7) }},
	}
}

// ofOwners are cases of two nodes that own the collecting.
func ofOwners() map[string]controlCase {
	owners := func(from, to int, pauses ...[2]int) func(p *controlSetup) {
		return func(p *controlSetup) {
			at := func(s int) time.Time { return p.l.startedAt.Add(time.Duration(s) * time.Second) }
			var stopped [][2]time.Time
			for _, x := range pauses {
				stopped = append(stopped, [2]time.Time{at(x[0]), at(x[1])})
			}
			p.l.checkOwners(append(withoutPauses(ownership{"1", at(0), at(20)}, stopped), ownership{"2", at(from), at(to)}))
		}
	}
	return map[string]controlCase{
		"one owner after the other":              {"", owners(21, 22)},
		"one owner while the other does not run": {"", owners(10, 18, [2]int{2, 19})},
		"two owners":                             {twoOwners, owners(19, 22)},
		"two owners before one stops to run":     {twoOwners, owners(1, 5, [2]int{2, 19})},
	}
}

// onSeveralNodes are cases that need several nodes.
func onSeveralNodes() map[string]controlCase {
	key := func(from, to, end int) *accountKey {
		k := &accountKey{outcome: acknowledged, made: seconds(from, to)}
		if end > 0 {
			k.asked, k.ended = 1, seconds(end, end+1)
		}
		return k
	}
	minute := func(stays ...interval) func(p *controlSetup) {
		return func(p *controlSetup) { p.a.admissions = stays; p.l.checkMinutes(p.a) }
	}
	active := func(last int) func(p *controlSetup) {
		return func(p *controlSetup) {
			p.a.keys = []*accountKey{key(0, 1, last), key(0, 1, 0), key(4, 6, 0)}
			p.l.checkActive(p.a)
		}
	}
	compare := func(first, second string) func(p *controlSetup) {
		return func(p *controlSetup) {
			p.says[0].rate, p.says[1].rate = first, second
			p.l.compareNodes(p.at[:])
		}
	}
	sessions := func(opened, tries int) func(p *controlSetup) {
		return func(p *controlSetup) { p.l.countSessions("ana@example.com", opened, tries, true) }
	}
	return map[string]controlCase{
		"values in order":                                 {"", func(p *controlSetup) { p.show(p.at[1], 0, 0, 1, 2, 3) }},
		"an old value elsewhere, at first":                {"", func(p *controlSetup) { p.show(p.at[1], time.Hour, 1, 3) }},
		"an old value where a newer one was acknowledged": {wentBack, func(p *controlSetup) { p.show(p.at[0], time.Hour, 2) }},
		"an old value after a newer one":                  {wentBack, func(p *controlSetup) { p.show(p.at[1], 0, 3, 2) }},
		"a late one without an answer": {"", func(p *controlSetup) {
			p.s.values[1].outcome, p.s.values[1].decided = unknown, false
			p.show(p.at[1], 0, 1, 3, 2)
		}},
		"back and forth": {wentBack, func(p *controlSetup) {
			p.s.values[1].outcome, p.s.values[1].decided = unknown, false
			p.show(p.at[1], 0, 3, 2, 3)
		}},
		"a value from nowhere":              {unexplained, func(p *controlSetup) { p.show(p.at[1], 0, 4) }},
		"a revoked key elsewhere, at first": {"", func(p *controlSetup) { p.ask(p.at[1], p.gone, answerOf(200, 4, "", 3)) }},
		"a revoked key where it ended":      {wronglyAccepted, func(p *controlSetup) { p.ask(p.at[0], p.gone, answerOf(200, 4, "", 3)) }},
		"six on a day at two nodes": {overGranted, func(p *controlSetup) {
			for i := range 6 {
				p.ask(p.at[i%2], p.good, answerOf(200, 4, "", 3))
			}
		}},
		"three in a minute":            {"", minute(seconds(0, 1), seconds(20, 30), seconds(40, 41), seconds(59, 61))},
		"four in a minute":             {overGranted, minute(seconds(70, 71), seconds(11, 12), seconds(40, 41), seconds(60, 61), seconds(69, 70))},
		"two keys, and one in between": {"", active(5)},
		"three keys":                   {wronglyAccepted, active(9)},
		"a key is on one node only": {lostWrite, func(p *controlSetup) {
			p.a.keys = []*accountKey{key(0, 1, 0)}
			p.l.compareKeys(p.at[0], p.a, []listedKey{{Status: "active"}})
			p.l.compareKeys(p.at[1], p.a, nil)
		}},
		"a revocation is on one node only": {lostWrite, func(p *controlSetup) {
			p.a.keys = []*accountKey{key(0, 1, 2)} // whose revocation was not answered
			p.l.compareKeys(p.at[0], p.a, []listedKey{{Status: "revoked"}})
			p.l.compareKeys(p.at[1], p.a, []listedKey{{Status: "active"}})
		}},
		"nodes are alike":                      {"", compare(rateText(3), rateText(3))},
		"nodes differ":                         {lostWrite, compare(rateText(3), rateText(2))},
		"a code opens one session":             {"", sessions(1, 0)},
		"a code opens two sessions":            {wronglyAccepted, sessions(2, 0)},
		"a code after five wrong tries":        {wronglyAccepted, sessions(1, 5)},
		"a code that nothing stood in its way": {lostWrite, sessions(0, 0)},
	}
}

// TestFaultsW1_ControlChecker plants, without any process, what no node and no cluster may do, and what they may.
func TestFaultsW1_ControlChecker(t *testing.T) {
	good, bad := 0, 0
	run := func(name string, single, check bool, x controlCase) {
		t.Run(name, func(t *testing.T) {
			p := newControlSetup(t, single)
			x.plant(p)
			if check {
				p.l.check(checkScope{whole: true}, p.at[0])
			}
			if found := p.l.violationCount(); x.want == "" && found > 0 || x.want != "" && p.l.violationCount(x.want) == 0 {
				t.Errorf("found %q, want %q", p.l.messages, x.want)
			}
		})
		if x.want == "" {
			good++
		} else {
			bad++
		}
	}
	for name, x := range answersUnderLoad() {
		run("answer/"+name, true, false, x)
	}
	for name, x := range statesAfterStart() {
		run("start/"+name, true, true, x)
	}
	cluster := onSeveralNodes()
	maps.Copy(cluster, ofOwners())
	for name, x := range cluster {
		run("cluster/"+name, false, false, x)
	}
	figure(t, "control of the ledger: %d breaches found, %d good situations taken for good", bad, good)
}

// TestFaultsBackup_ControlChecker plants a backup that is older than it says: what came before its time must be
// there, what came after may.
func TestFaultsBackup_ControlChecker(t *testing.T) {
	for name, c := range map[string]controlCase{
		"as it was": {"", func(*controlSetup) {}},
		"with what came after": {"", func(p *controlSetup) {
			keys := []string{keyText("good", "revoked"), keyText("gone", "revoked"), keyText("late", "active")}
			p.says[0].keys, p.says[0].goodCode = strings.Join(keys, ","), 401
		}},
		"a key is missing":      {lostWrite, func(p *controlSetup) { p.says[0].keys = keyText("gone", "revoked") }},
		"a charge is missing":   {overGranted, func(p *controlSetup) { p.says[0].remaining = 898 }},
		"a rate is missing":     {lostWrite, func(p *controlSetup) { p.says[0].rate = rateText(4) }},
		"a key of no ledger":    {unexplained, func(p *controlSetup) { p.says[0].keys += "," + keyText("other", "active") }},
		"a revocation is lost":  {lostWrite, func(p *controlSetup) { p.says[0].keys = keyText("good", "active") + "," + keyText("gone", "active") }},
		"a suspension is there": {"", func(p *controlSetup) { p.says[0].suspendedAt, p.says[0].goodCode = "2026-06-17T16:00:00Z", 401 }},
	} {
		p := newControlSetup(t, true)
		then := p.l.snapshot()
		p.good.asked, p.good.revoked, p.a.suspended, p.a.changes = 1, p.at[0], true, 2
		p.a.keys = append(p.a.keys, &accountKey{name: "late", id: "late", outcome: acknowledged})
		p.s.values = append(p.s.values, &seriesValue{interval: seconds(70, 75), by: p.at[0], outcome: acknowledged, decided: true})
		then.allowLater(p.l)
		c.plant(p)
		then.check(checkScope{whole: true}, p.at[0])
		if found := then.violationCount(); c.want == "" && found > 0 || c.want != "" && then.violationCount(c.want) == 0 {
			t.Errorf("%s: found %q, want %q", name, then.messages, c.want)
		}
	}
}
