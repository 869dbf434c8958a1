package account

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// loginFixture is a registry whose events are durable at once.
type loginFixture struct {
	t        *testing.T
	registry *Registry
	now      ClockReading
	random   seededReader
	opened   int
}

func newLoginFixture(t *testing.T) *loginFixture {
	return &loginFixture{t, NewRegistry([32]byte{7}), ClockReading{Wall: noon}, newSeededReader(1), 0}
}

func (d *loginFixture) advance(span time.Duration) {
	d.now.Wall, d.now.Monotonic = d.now.Wall.Add(span), d.now.Monotonic+span
}

// client is an address that was not used before.
func (d *loginFixture) client() netip.Addr {
	d.opened++
	return clientAddress(d.opened)
}

// request asks for a code; "" when no mail is sent.
func (d *loginFixture) request(email string) (code string, err error) {
	event, err := d.registry.RequestCode(idOf(email), d.client(), d.now)
	if err != nil {
		return "", err
	}
	d.registry.Apply(event)
	secret, _ := NewCode(d.random)
	d.registry.ActivateCode(event, secret)
	if event.Mailed {
		code = secret.Reveal()
	}
	return code, nil
}

func (d *loginFixture) mustRequest(email string) string {
	d.t.Helper()
	code, err := d.request(email)
	if err != nil || code == "" {
		d.t.Fatalf("no code for %s: %v", email, err)
	}
	return code
}

func (d *loginFixture) try(email, code string) (token Digest, err error) {
	d.opened++
	token = digestOf(fmt.Sprint("token", d.opened))
	event, err := d.registry.TryCode(idOf(email), code, token, d.client(), d.now)
	if event != nil {
		d.registry.Apply(event)
	}
	return token, err
}

// restart is another process on the log.
func (d *loginFixture) restart() {
	d.registry = RestoreRegistry(d.registry.Snapshot().State(), [32]byte{8})
}

func (d *loginFixture) refused(err error, code engine.Code, retry time.Duration) {
	d.t.Helper()
	var refusal *engine.Error
	if !errors.As(err, &refusal) || refusal.Code != code || refusal.RetryAfter != retry {
		d.t.Fatalf("%v, want %s after %s", err, code, retry)
	}
}

// not is another code.
func not(code string) string {
	if code[0] == '0' {
		return "1" + code[1:]
	}
	return "0" + code[1:]
}

// Of two right codes before anything is durable one opens a session.
func TestS2_TwoRightAnswers(t *testing.T) {
	d := newLoginFixture(t)
	code := d.mustRequest("a@b.do")
	first, err := d.registry.TryCode(idOf("a@b.do"), code, digestOf("1"), d.client(), d.now)
	if _, opened := first.(*SessionOpened); !opened || err != nil {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := d.registry.TryCode(idOf("a@b.do"), code, digestOf("2"), d.client(), d.now)
	d.refused(err, engine.CodeInvalidCode, 0)
	if _, failed := second.(*CodeFailed); !failed {
		t.Errorf("%+v", second)
	}
	d.registry.Abort(first) // it did not become durable: the code is used up all the same
	_, err = d.try("a@b.do", code)
	d.refused(err, engine.CodeInvalidCode, 0)
}

func TestK3_OneCodeAMinute(t *testing.T) {
	d := newLoginFixture(t)
	if event, err := d.registry.RequestCode(idOf("pending@b.do"), d.client(), d.now); err != nil || !event.Mailed {
		t.Fatal(err)
	}
	_, err := d.request("pending@b.do")
	d.refused(err, engine.CodeRequestedTooSoon, time.Minute)
	_, err = d.try("known@b.do", d.mustRequest("known@b.do"))
	must(t, err)
	for _, email := range []string{"known@b.do", "unknown@b.do"} {
		d.advance(time.Hour)
		d.mustRequest(email)
		_, err := d.request(email)
		d.refused(err, engine.CodeRequestedTooSoon, time.Minute)
		d.advance(time.Minute - 1)
		_, err = d.request(email)
		d.refused(err, engine.CodeRequestedTooSoon, 1)
		d.now.Wall = d.now.Wall.Add(-time.Hour) // steps of the wall clock change nothing
		_, err = d.request(email)
		d.refused(err, engine.CodeRequestedTooSoon, 1)
		d.restart()
		_, err = d.request(email)
		d.refused(err, engine.CodeRequestedTooSoon, 1)
		d.advance(1)
		d.mustRequest(email)
	}
}

func TestS9_TenMailsADay(t *testing.T) {
	d := newLoginFixture(t)
	for _, tt := range []struct {
		wall    string
		letters int
	}{
		{"2026-06-17T16:00:00Z", mailsDayMax},
		{"2026-06-18T03:40:00Z", 0},
		{"2026-06-18T04:00:00Z", mailsDayMax},
		{"2026-06-17T16:00:00Z", 0}, // the clock went back: the later day counts on
		{"2026-06-19T04:00:00Z", mailsDayMax},
	} {
		d.now.Wall = at(tt.wall)
		letters := 0
		for range mailsDayMax + 5 {
			d.advance(time.Minute)
			code, err := d.request("a@b.do")
			if err != nil {
				t.Fatal(err) // the answer is the same
			}
			if code != "" {
				letters++
			}
			if d.opened%4 == 0 {
				d.restart()
			}
		}
		if letters != tt.letters {
			t.Errorf("%s: %d letters", tt.wall, letters)
		}
	}
}

// The limit of 25 wrong tries includes pending ones; then a right code is refused too.
func TestS1_WrongTriesOfAnAddress(t *testing.T) {
	d := newLoginFixture(t)
	email := idOf("a@b.do")
	var events []RegistryEvent
	for range 100 {
		event, err := d.registry.TryCode(email, "00000000", Digest{}, d.client(), d.now)
		d.refused(err, engine.CodeInvalidCode, 0)
		if event != nil {
			events = append(events, event)
		}
	}
	if len(events) != wrongTriesDayMax {
		t.Fatalf("%d wrong tries", len(events))
	}
	for _, event := range events {
		d.registry.Apply(event)
	}
	if sent, err := d.request("a@b.do"); sent != "" || err != nil {
		t.Errorf("a letter for an address under attack: %v", err)
	}
	d.restart()
	if event, _ := d.registry.TryCode(email, "00000000", Digest{}, d.client(), d.now); event != nil {
		t.Error("a restart forgot them")
	}
	d.now.Wall, d.now.Monotonic = engine.NextMidnight(d.now.Wall), 13*time.Hour
	code := d.mustRequest("a@b.do")
	if _, err := d.try("a@b.do", code); err != nil {
		t.Errorf("the next day: %v", err)
	}
}

// When the wrong tries of all addresses reach the limit of an hour, right codes are refused too.
func TestS1_WrongTriesOfAll(t *testing.T) {
	d := newLoginFixture(t)
	code := d.mustRequest("a@b.do")
	for i := range wrongTriesHourMax {
		if event, _ := d.registry.TryCode(idOf(fmt.Sprintf("%d@b.do", i)), "00000000", Digest{}, d.client(), d.now); i > 0 {
			d.registry.Apply(event)
		}
	}
	_, err := d.try("a@b.do", code)
	d.refused(err, engine.CodeInvalidCode, 0)
	d.restart() // forgets the try that did not become durable
	if event, _ := d.registry.TryCode(idOf("x@b.do"), "00000000", Digest{}, d.client(), d.now); event == nil {
		t.Error("the lost one left no room")
	} else {
		d.registry.Apply(event)
	}
	d.advance(time.Hour)
	if event, _ := d.registry.TryCode(idOf("y@b.do"), "00000000", Digest{}, d.client(), d.now); event != nil {
		t.Error("forgotten within the hour")
	}
}

func TestK2_BrakesOnClients(t *testing.T) {
	d := newLoginFixture(t)
	block := []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::ffff")}
	for i := range clientCodesHourMax {
		if _, err := d.registry.RequestCode(idOf(fmt.Sprintf("%d@b.do", i)), block[i%2], d.now); err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.registry.RequestCode(idOf("x@b.do"), block[0], d.now)
	d.refused(err, engine.CodeRateLimited, counterMinutes*time.Minute)
	for i := range clientTriesHourMax {
		_, err := d.registry.TryCode(idOf(fmt.Sprintf("%d@b.do", i)), "00000000", Digest{}, block[i%2], d.now)
		d.refused(err, engine.CodeInvalidCode, 0)
	}
	d.advance(time.Hour)
	_, err = d.registry.TryCode(idOf("x@b.do"), "00000000", Digest{}, block[0], d.now)
	d.refused(err, engine.CodeRateLimited, time.Minute)
	if _, err := d.registry.RequestCode(idOf("x@b.do"), netip.MustParseAddr("2001:db8:0:1::1"), d.now); err != nil {
		t.Error(err)
	}
	d.advance(time.Minute)
	if _, err := d.registry.RequestCode(idOf("z@b.do"), block[0], d.now); err != nil {
		t.Error(err)
	}
}

func TestCodesOfAllAreBounded(t *testing.T) {
	d := newLoginFixture(t)
	for i := range codesHourMax {
		event, err := d.registry.RequestCode(idOf(fmt.Sprintf("%d@b.do", i)), d.client(), d.now)
		must(t, err)
		if i%2 == 0 {
			d.registry.Apply(event)
		}
	}
	addresses := d.registry.remembered()
	for _, email := range []string{"new@b.do", "0@b.do"} {
		if email == "0@b.do" {
			d.advance(time.Minute)
		}
		if _, err := d.request(email); codeOf(err) != engine.CodeRateLimited {
			t.Errorf("%s: %v", email, err)
		}
	}
	if d.registry.remembered() != addresses {
		t.Error("a refused request took memory")
	}
}

func TestClientsAreBounded(t *testing.T) {
	table := loginClients{}
	for i := range clientsMax + clientsMax/2 {
		addr := netip.AddrFrom4([4]byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)})
		table.get(addr).tries.add(time.Duration(i) * time.Second)
		if len(table) > clientsMax {
			t.Fatalf("%d clients", len(table))
		}
	}
	newest := clientsMax + clientsMax/2 - 1
	if c := table[netip.PrefixFrom(netip.AddrFrom4([4]byte{0, byte(newest >> 16), byte(newest >> 8), byte(newest)}), 32)]; c == nil {
		t.Error("the newest client is gone")
	}
	if c := table[netip.MustParsePrefix("0.0.0.1/32")]; c != nil {
		t.Error("the oldest client is still there")
	}
}

// A code or session ends at the end of its time on either clock, whatever the other one shows.
func TestK2_EndsByEitherClock(t *testing.T) {
	for _, left := range []struct {
		wall, monotonic time.Duration
		valid           bool
	}{{1, 1, true}, {time.Hour, 1, true}, {time.Hour, 0, false}, {0, time.Minute, false}} {
		d := newLoginFixture(t)
		end := func(lifetime time.Duration) ClockReading {
			return ClockReading{Wall: d.now.Wall.Add(lifetime - left.wall), Monotonic: d.now.Monotonic + lifetime - left.monotonic}
		}
		code := d.mustRequest("a@b.do")
		d.now = end(CodeLifetime)
		_, codeErr := d.try("a@b.do", code)
		token, err := d.try("b@b.do", d.mustRequest("b@b.do"))
		must(t, err)
		_, sessionErr := d.registry.Session(token, end(SessionLifetime))
		if (codeErr == nil) != left.valid || (sessionErr == nil) != left.valid {
			t.Errorf("%+v left: code %v, session %v", left, codeErr, sessionErr)
		}
	}
}

func TestEightSessionsOfAnAddress(t *testing.T) {
	d := newLoginFixture(t)
	var tokens []Digest
	for range sessionsPerEmailMax + 1 {
		token, err := d.try("a@b.do", d.mustRequest("a@b.do"))
		must(t, err)
		tokens = append(tokens, token)
		d.advance(time.Minute)
	}
	d.restart()
	_, err := d.registry.Session(tokens[0], d.now)
	d.refused(err, engine.CodeInvalidSession, 0) // the ninth took its place
	for _, token := range tokens[1:] {
		if account, err := d.registry.Session(token, d.now); err != nil || account != 1 {
			t.Errorf("%d, %v", account, err)
		}
	}
}

// remembered counts the addresses of which anything is known.
func (r *Registry) remembered() int {
	count := len(r.addresses.index)
	for digest := range r.attempts {
		if _, kept := r.addresses.index[digest]; !kept {
			count++
		}
	}
	return count
}

func TestSessionsAreRemoved(t *testing.T) {
	r := NewRegistry([32]byte{})
	for i := range 5_000 {
		email := idOf(fmt.Sprintf("%d@b.do", i))
		r.Apply(&SessionOpened{Account: uint64(i + 1), New: true, Email: email, Token: digestOf(fmt.Sprint(i)), Monotonic: time.Duration(i) * time.Second})
	}
	if span := int(SessionLifetime / time.Second); len(r.sessions) != span || len(r.sessionOrder) != span || len(r.attempts) != span || r.lastID != 5_000 {
		t.Errorf("%d sessions, %d in order", len(r.sessions), len(r.sessionOrder))
	}
}

// Addresses without an account are removed after two days, accounts never; a replay removes the same.
func TestAddressesAreRemoved(t *testing.T) {
	d := newLoginFixture(t)
	if _, err := d.try("known@b.do", d.mustRequest("known@b.do")); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		d.mustRequest(fmt.Sprintf("%d@b.do", i))
		if _, err := d.registry.TryCode(idOf(fmt.Sprintf("lost%d@b.do", i)), "00000000", Digest{}, d.client(), d.now); err == nil {
			t.Fatal("opened")
		}
	}
	d.advance(forgetAfter)
	d.mustRequest("later@b.do")
	state := d.registry.Snapshot().State()
	kept := map[EmailID]bool{}
	for _, address := range state.Addresses {
		kept[address.Email] = true
	}
	if len(kept) != 2 || !kept[idOf("known@b.do")] || !kept[idOf("later@b.do")] {
		t.Errorf("%d addresses kept", len(state.Addresses))
	}
	if d.registry.triesPending != 100 || d.registry.remembered() != 102 {
		t.Errorf("%d tries in flight, %d addresses", d.registry.triesPending, d.registry.remembered())
	}
	if !reflect.DeepEqual(RestoreRegistry(state, [32]byte{}).Snapshot().State(), state) {
		t.Error("a snapshot does not give itself")
	}
}

// A single node writes no codes, sealed or not.
func TestK2_ASingleNodeLogsNoCode(t *testing.T) {
	r := NewRegistry([32]byte{1})
	now := ClockReading{Wall: noon, Monotonic: time.Hour}
	event, err := r.RequestCode(idOf("a@b.do"), clientAddress(0), now)
	must(t, err)
	if r.Seal(event, SecretOf("12345678")); event.Sealed != (CodeSeal{}) || !event.Mailed {
		t.Errorf("%+v", event)
	}
	if r.ShareCodes(); event.Sealed != (CodeSeal{}) {
		t.Errorf("%+v", event)
	}
	if r.Seal(event, SecretOf("12345678")); event.Sealed == (CodeSeal{}) {
		t.Error("a shared key seals nothing")
	}
}

func TestHourCounter(t *testing.T) {
	var r HourCounter
	if r.total(0) != 0 || r.wait(0, 1) != 0 || r.wait(0, 0) != time.Minute {
		t.Error("an empty hour")
	}
	r.add(30 * time.Second)
	r.add(90 * time.Second)
	for _, tt := range []struct {
		now   time.Duration
		total int
		wait  time.Duration // for a limit of 2
	}{
		{90 * time.Second, 2, 61*time.Minute - 90*time.Second},
		{61*time.Minute - 1, 2, 1},
		{61 * time.Minute, 1, 0},
		{62*time.Minute - 1, 1, 0},
		{62 * time.Minute, 0, 0},
		{1000 * time.Hour, 0, 0},
	} {
		if total, wait := r.total(tt.now), r.wait(tt.now, 2); total != tt.total || wait != tt.wait {
			t.Errorf("at %s: %d, %s", tt.now, total, wait)
		}
	}
	r.add(1000 * time.Hour)
	if r.total(1000*time.Hour) != 1 {
		t.Error("an hour long ago is back")
	}
}

func TestK2_FiveTries(t *testing.T) {
	for wrong := range 7 {
		d := newLoginFixture(t)
		code := d.mustRequest("a@b.do")
		for range wrong {
			_, err := d.try("a@b.do", not(code))
			d.refused(err, engine.CodeInvalidCode, 0)
		}
		if _, err := d.try("a@b.do", code); (err == nil) != (wrong < CodeTriesMax) {
			t.Errorf("after %d wrong tries: %v", wrong, err)
		}
	}
}
