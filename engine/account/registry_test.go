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

// client is an address in a network that was not used before.
func (d *loginFixture) client() Requester {
	d.opened++
	return clientAddress(d.opened)
}

// request asks for a code.
func (d *loginFixture) request(email string) (code string, err error) {
	return d.requestFrom(email, d.client())
}

func (d *loginFixture) requestFrom(email string, from Requester) (code string, err error) {
	event, err := d.registry.RequestCode(idOf(email), from, d.now)
	if err != nil {
		return "", err
	}
	d.registry.Apply(event)
	secret, _ := NewCode(d.random)
	d.registry.ActivateCode(event, secret, from)
	return secret.Reveal(), nil
}

func (d *loginFixture) mustRequest(email string) string {
	d.t.Helper()
	code, err := d.request(email)
	if err != nil {
		d.t.Fatalf("no code for %s: %v", email, err)
	}
	return code
}

func (d *loginFixture) try(email, code string) (token Digest, err error) {
	return d.tryFrom(email, code, d.client())
}

func (d *loginFixture) tryFrom(email, code string, from Requester) (token Digest, err error) {
	d.opened++
	token = digestOf(fmt.Sprint("token", d.opened))
	event, err := d.registry.TryCode(idOf(email), code, token, from, d.now)
	if event != nil {
		d.registry.Apply(event)
	}
	return token, err
}

// login asks for a code and uses it.
func (d *loginFixture) login(email string, from Requester) error {
	code, err := d.requestFrom(email, from)
	if err == nil {
		_, err = d.tryFrom(email, code, from)
	}
	return err
}

// guess asks for a code of an address, and tries five wrong ones. It returns how many were let through as guesses.
func (d *loginFixture) guess(email string, from func() Requester) (guesses int) {
	_, _ = d.requestFrom(email, from())
	for range CodeTriesMax + 1 {
		if event, _ := d.registry.TryCode(idOf(email), "wrong", Digest{}, from(), d.now); event != nil {
			d.registry.Apply(event)
			guesses++
		}
	}
	return guesses
}

// restart is another process on the log.
func (d *loginFixture) restart() {
	d.registry = RestoreRegistry(sorted(d.registry.Snapshot()), [32]byte{8})
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

func TestK3_OneCodeAMinute(t *testing.T) {
	d := newLoginFixture(t)
	_, err := d.try("known@b.do", d.mustRequest("known@b.do"))
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

// A page that is loaded without its cookie is a new browser each time; that gives no second mail within the minute.
func TestK3_OneMailAMinuteForNewBrowsersToo(t *testing.T) {
	d := newLoginFixture(t)
	d.mustRequest("a@b.do")
	for i := range 5 {
		_, err := d.requestFrom("a@b.do", Requester{d.client().Address, Digest{byte(i + 1)}})
		d.refused(err, engine.CodeRequestedTooSoon, time.Minute)
	}
}

// countMails asks once a minute until a request is refused, and returns how many were sent.
func (d *loginFixture) countMails(email string, from func() Requester) (mails int, refusal error) {
	for {
		d.advance(time.Minute)
		if _, err := d.requestFrom(email, from()); err != nil {
			return mails, err
		}
		mails++
	}
}

func TestK3_MailsOfADay(t *testing.T) {
	d := newLoginFixture(t)
	d.now.Wall = at("2026-06-17T16:00:00Z")
	owner := Requester{requester("198.51.100.9").Address, Digest{1}}
	must(t, d.login("a@b.do", owner)) // one of the thirty
	one := func() Requester { return requester("192.0.2.1") }
	if mails, err := d.countMails("a@b.do", one); mails != mailsNetworkMax {
		t.Errorf("%d mails for one network: %v", mails, err)
	}
	_, err := d.requestFrom("a@b.do", requester("192.0.2.200"))
	d.refused(err, engine.CodeRateLimited, at("2026-06-18T04:00:00Z").Sub(d.now.Wall)) // the same /24
	six := func() Requester { d.opened++; return requester(fmt.Sprintf("2001:db8:1:%x::1", d.opened)) }
	if mails, err := d.countMails("a@b.do", six); mails != mailsNetworkMax {
		t.Errorf("%d mails for one IPv6 /48: %v", mails, err)
	}
	if mails, err := d.countMails("a@b.do", d.client); mails != mailsDayMax-2*mailsNetworkMax-1 {
		t.Errorf("%d mails for many networks: %v", mails, err)
	}
	d.restart()
	if mails, err := d.countMails("a@b.do", d.client); mails != 0 || codeOf(err) != engine.CodeRateLimited {
		t.Errorf("%d mails after a restart: %v", mails, err)
	}
	if mails, err := d.countMails("a@b.do", func() Requester { return owner }); mails != mailsKnownMax {
		t.Errorf("%d mails for the browser that has logged in: %v", mails, err)
	}
	d.restart()
	if mails, err := d.countMails("a@b.do", func() Requester { return owner }); mails != 0 {
		t.Errorf("%d more after a restart: %v", mails, err)
	}
	d.now.Wall = at("2026-06-18T04:00:00Z")
	if mails, err := d.countMails("a@b.do", d.client); mails != mailsDayMax {
		t.Errorf("%d mails the next day: %v", mails, err)
	}
	d.now.Wall = at("2026-06-17T16:00:00Z") // the clock went back: the later day counts on
	if mails, err := d.countMails("a@b.do", d.client); mails != 0 {
		t.Errorf("%d mails after the clock went back: %v", mails, err)
	}
	for range 2 { // the second time the network has used its mails up
		d.registry.Apply(&LoginUnlocked{Email: idOf("a@b.do"), At: d.now.Wall, By: "ana"})
		known, errKnown := d.countMails("a@b.do", func() Requester { return owner })
		if mails, err := d.countMails("a@b.do", one); known != mailsKnownMax || mails != mailsNetworkMax {
			t.Errorf("after unlock %d mails for the browser, %d for a network: %v, %v", known, mails, errKnown, err)
		}
	}
}

// A later request replaces the oldest code, but not that of the browser that has logged in before.
func TestK3_ALaterCodeReplacesTheOldest(t *testing.T) {
	d := newLoginFixture(t)
	owner := Requester{d.client().Address, Digest{1}}
	must(t, d.login("a@b.do", owner))
	var codes []string
	var from []Requester
	for i := range 6 {
		d.advance(time.Minute)
		if from = append(from, Requester{d.client().Address, Digest{byte(i + 2)}}); i == 0 {
			from[0] = owner
		}
		code, err := d.requestFrom("a@b.do", from[i])
		must(t, err)
		codes = append(codes, code)
	}
	for i, want := range []bool{true, false, false, true, true, true} { // four codes have room: 20 wrong tries
		if _, err := d.tryFrom("a@b.do", codes[i], from[i]); (err == nil) != want {
			t.Errorf("code %d: %v", i, err)
		}
	}
}

// Requests for made-up addresses, by few networks or many, don't use up the codes of owners.
func TestK3_MadeUpAddressesUseUpTheirOwnCodes(t *testing.T) {
	d := newLoginFixture(t)
	must(t, d.login("owner@b.do", d.client()))
	d.advance(time.Minute)
	ask := func(from func(i int) Requester) (sent int) {
		for i := range 5010 {
			d.opened++
			if _, err := d.requestFrom(fmt.Sprintf("made.up.%d@b.do", d.opened), from(i)); err == nil {
				sent++
			}
		}
		return sent
	}
	few := make([]Requester, 167)
	for i := range few {
		few[i] = d.client()
	}
	if sent := ask(func(i int) Requester { return few[i/clientCodesHourMax%len(few)] }); sent >= newcomerCodesHourMax {
		t.Errorf("few networks: %d mails", sent)
	}
	d.mustRequest("newcomer@b.do")
	ask(func(int) Requester { return d.client() })
	if _, err := d.request("late@b.do"); codeOf(err) != engine.CodeRateLimited {
		t.Errorf("a newcomer: %v", err)
	}
	if usedUp := d.registry.UsedUp; !usedUp.Newcomers || !usedUp.Since.Equal(d.now.Wall) || usedUp.Until.Sub(d.now.Wall) != 60*time.Minute {
		t.Errorf("%+v", usedUp)
	}
	d.restart()
	if _, err := d.request("late@b.do"); codeOf(err) != engine.CodeRateLimited {
		t.Errorf("a newcomer after a restart: %v", err)
	}
	d.mustRequest("owner@b.do")
	d.registry.Apply(&LoginUnlocked{Email: idOf("late@b.do"), At: d.now.Wall, By: "ana"})
	if d.mustRequest("late@b.do"); d.registry.UsedUp != (CodesUsedUp{}) {
		t.Error("after unlock the codes are still used up")
	}
}

// Other clients have 20 of the 25 wrong tries of an address and day. The browser that has logged in before has the
// rest, and gets a mail for it.
func TestS1_WrongTriesOfAnAddress(t *testing.T) {
	d := newLoginFixture(t)
	owner := Requester{d.client().Address, Digest{1}}
	must(t, d.login("a@b.do", owner))
	guesses := 0
	for range 10 {
		d.advance(time.Minute)
		guesses += d.guess("a@b.do", d.client)
	}
	if guesses != 20 {
		t.Errorf("%d guesses of others", guesses)
	}
	d.advance(time.Minute)
	d.restart()
	if _, err := d.request("a@b.do"); codeOf(err) != engine.CodeRateLimited {
		t.Errorf("a mail for another client: %v", err)
	}
	must(t, d.login("a@b.do", owner))
	d.advance(time.Minute)
	if guesses := d.guess("a@b.do", func() Requester { return owner }); guesses != 5 {
		t.Errorf("%d guesses of the owner's browser", guesses)
	}
	d.advance(time.Minute)
	if _, err := d.requestFrom("a@b.do", owner); codeOf(err) != engine.CodeRateLimited {
		t.Errorf("a mail beyond the limit: %v", err)
	}
	d.registry.Apply(&LoginUnlocked{Email: idOf("a@b.do"), At: d.now.Wall, By: "ana"})
	must(t, d.login("a@b.do", d.client()))
}

// The 25th wrong try of a day is the last, also where a code still has tries.
func TestK2_TwentyFiveWrongTriesOfADay(t *testing.T) {
	d := newLoginFixture(t)
	code := d.mustRequest("a@b.do")
	for range wrongTriesDayMax {
		d.registry.Apply(&CodeFailed{Email: idOf("a@b.do"), At: d.now.Wall, Browser: Digest{1}}) // another browser's code
	}
	_, err := d.try("a@b.do", code)
	d.refused(err, engine.CodeInvalidCode, 0)
}

// Frequent clients have 400 of the 1,000 wrong tries of an hour, others 800. A right code of another client then has to
// wait, and the answer says for how long.
func TestS1_WrongTriesOfAll(t *testing.T) {
	d := newLoginFixture(t)
	owner := Requester{d.client().Address, Digest{1}}
	must(t, d.login("a@b.do", owner))
	d.advance(time.Minute)
	guesses, few := 0, []Requester{}
	for range 40 {
		few = append(few, d.client())
	}
	turn := 0
	fromFew := func() Requester { turn++; return few[turn/30%len(few)] }
	for i := range 150 {
		guesses += d.guess(fmt.Sprintf("few%d@b.do", i), fromFew)
	}
	if guesses > 400+len(few)*frequentUses {
		t.Errorf("%d guesses of few clients", guesses)
	}
	must(t, d.login("honest@b.do", d.client()))
	for i := range 150 {
		guesses += d.guess(fmt.Sprintf("many%d@b.do", i), d.client)
	}
	if guesses != 800 {
		t.Errorf("%d guesses of others", guesses)
	}
	d.restart()
	code := d.mustRequest("late@b.do")
	if _, err := d.try("late@b.do", code); codeOf(err) != engine.CodeRateLimited {
		t.Errorf("beyond the limit: %v", err)
	}
	must(t, d.login("a@b.do", owner))
	d.registry.Apply(&LoginUnlocked{Email: idOf("late@b.do"), At: d.now.Wall, By: "ana"})
	if _, err := d.try("late@b.do", code); err != nil {
		t.Errorf("after the operator lifted the limit: %v", err)
	}
}

// Tries for addresses without a pending code can't succeed: they count against their client, never against an owner.
func TestS1_TriesWithoutACodeCountForTheirClient(t *testing.T) {
	d := newLoginFixture(t)
	few := make([]Requester, 18)
	for i := range few {
		few[i] = d.client()
	}
	for i := range 1010 {
		email := "owner@b.do"
		if i >= wrongTriesDayMax {
			email = fmt.Sprintf("%d@b.do", i)
		}
		event, err := d.registry.TryCode(idOf(email), "00000000", Digest{}, few[i%len(few)], d.now)
		if d.refused(err, engine.CodeInvalidCode, 0); event != nil {
			t.Fatalf("try %d counts: %+v", i, event)
		}
	}
	if len(d.registry.addresses)+len(d.registry.codes) != 0 {
		t.Error("they take memory")
	}
	must(t, d.login("owner@b.do", d.client()))
}

// A browser that has logged in before can use its code, whatever others do with the address meanwhile.
func TestS1_OthersDoNotSpoilTheCodeOfAKnownBrowser(t *testing.T) {
	d := newLoginFixture(t)
	owner, other := Requester{d.client().Address, Digest{1}}, Requester{d.client().Address, Digest{2}}
	must(t, d.login("a@b.do", owner))
	d.advance(time.Minute)
	code, err := d.requestFrom("a@b.do", owner)
	must(t, err)
	if guesses := d.guess("a@b.do", d.client); guesses != 0 {
		t.Errorf("%d guesses without a code of their own", guesses)
	}
	if _, err := d.tryFrom("a@b.do", code, other); err == nil {
		t.Error("another browser has used the code")
	}
	guesses := 0
	for range 9 {
		d.advance(time.Minute)
		guesses += d.guess("a@b.do", func() Requester { return other })
		guesses += d.guess("a@b.do", d.client)
	}
	if guesses != 15 { // the five tries of the owner's code are kept from the 20 of others
		t.Errorf("%d guesses of others", guesses)
	}
	if _, err := d.tryFrom("a@b.do", code, owner); err != nil {
		t.Errorf("the owner with the right code: %v", err)
	}
}

func TestK2_BrakesOnClients(t *testing.T) {
	d := newLoginFixture(t)
	block := []Requester{requester("2001:db8::1"), requester("2001:db8::ffff")}
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
	if _, err := d.registry.RequestCode(idOf("x@b.do"), requester("2001:db8:0:1::1"), d.now); err != nil {
		t.Error(err)
	}
	d.advance(time.Minute)
	if _, err := d.registry.RequestCode(idOf("z@b.do"), block[0], d.now); err != nil {
		t.Error(err)
	}
}

func TestCodesOfAllAreBounded(t *testing.T) {
	d := newLoginFixture(t)
	for i := range newcomerCodesHourMax {
		if i == newcomerCodesHourMax*defaultShare/wholeShare { // the rest is for networks that ask for the first time today
			if _, err := d.registry.RequestCode(idOf("second@b.do"), clientAddress(1), d.now); codeOf(err) != engine.CodeRateLimited {
				t.Errorf("a second request of a network: %v", err)
			}
		}
		event, err := d.registry.RequestCode(idOf(fmt.Sprintf("%d@b.do", i)), d.client(), d.now)
		must(t, err)
		d.registry.Apply(event)
	}
	addresses := len(d.registry.addresses) + len(d.registry.codes)
	for _, email := range []string{"new@b.do", "0@b.do"} {
		if email == "0@b.do" {
			d.advance(time.Minute)
		}
		if _, err := d.request(email); codeOf(err) != engine.CodeRateLimited {
			t.Errorf("%s: %v", email, err)
		}
	}
	if len(d.registry.addresses)+len(d.registry.codes) != addresses {
		t.Error("a refused request took memory")
	}
}

func TestClientsAreBounded(t *testing.T) {
	table := loginClients{}
	for i := range clientsMax + clientsMax/2 {
		addr := netip.AddrFrom4([4]byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)})
		table.get(ClientPrefix(addr)).tries.add(time.Duration(i) * time.Second)
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
	addr := netip.MustParseAddr("192.0.2.1")
	network := table.get(networkPrefix(addr, 24))
	for day := range engine.Date(3) {
		if table.addMail(addr, EmailID{digest: Digest{byte(day)}}, day); len(network.mails) != 1 {
			t.Errorf("mails of %d days", len(network.mails))
		}
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
	owner := Requester{d.client().Address, Digest{1}}
	for range sessionsPerEmailMax + 1 {
		code, err := d.requestFrom("a@b.do", owner)
		must(t, err)
		token, err := d.tryFrom("a@b.do", code, owner)
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

func TestSessionsAreRemoved(t *testing.T) {
	r := NewRegistry([32]byte{})
	for i := range 5_000 {
		email := idOf(fmt.Sprintf("%d@b.do", i))
		r.Apply(&SessionOpened{Account: uint64(i + 1), New: true, Email: email, Token: digestOf(fmt.Sprint(i)), Monotonic: time.Duration(i) * time.Second})
	}
	if span := int(SessionLifetime / time.Second); len(r.state.Sessions) != span || r.state.LastID != 5_000 {
		t.Errorf("%d sessions", len(r.state.Sessions))
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
	}
	d.advance(forgetAfter)
	d.mustRequest("later@b.do")
	state := sorted(d.registry.Snapshot())
	kept := map[EmailID]bool{}
	for _, address := range state.Addresses {
		kept[address.Email] = true
	}
	if len(kept) != 2 || !kept[idOf("known@b.do")] || !kept[idOf("later@b.do")] {
		t.Errorf("%d addresses kept", len(state.Addresses))
	}
	if codes, sessions := len(d.registry.codes), len(state.Sessions); codes != 1 || sessions != 1 || state.LastSweep != d.now.Monotonic {
		t.Errorf("the codes of %d addresses, %d sessions, swept at %s", codes, sessions, state.LastSweep)
	}
	if !reflect.DeepEqual(sorted(RestoreRegistry(state, [32]byte{}).Snapshot()), state) {
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

// TestK2_S1_WrongTriesOfAnotherNode: wrong tries that come with the log of a cluster count like those made here, so
// that there are five over a change of the leader too.
func TestK2_S1_WrongTriesOfAnotherNode(t *testing.T) {
	for tries, opens := range map[int]bool{CodeTriesMax - 1: true, CodeTriesMax: false} {
		before, after := newLoginFixture(t), newLoginFixture(t)
		before.registry.ShareCodes()
		after.registry.ShareCodes()
		issued, err := before.registry.RequestCode(idOf("ana@example.com"), before.client(), before.now)
		must(t, err)
		before.registry.Seal(issued, SecretOf("12345678"))
		before.registry.Apply(issued)
		after.registry.ApplyAt(issued, after.now.Monotonic)
		for range tries {
			event, _ := before.registry.TryCode(idOf("ana@example.com"), "87654321", Digest{}, before.client(), before.now)
			failed := event.(*CodeFailed)
			before.registry.Apply(failed)
			after.registry.ApplyAt(&CodeFailed{Email: failed.Email, At: failed.At, Monotonic: failed.Monotonic, Browser: failed.Browser}, after.now.Monotonic)
		}
		if _, err := after.try("ana@example.com", "12345678"); (err == nil) != opens {
			t.Errorf("after %d wrong tries at the leader before: %v", tries, err)
		}
	}
}

// TestK2_K3_DayCounter: with the clock set back across midnight the later day counts on.
func TestK2_K3_DayCounter(t *testing.T) {
	var c DayCounter
	for _, day := range []engine.Date{5, 4, 5} {
		c.add(day)
	}
	if c.on(4) != 3 || c.on(5) != 3 || c.on(6) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestHourCounter(t *testing.T) {
	var r HourCounter
	if r.wait(0, 1) != 0 {
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
		if wait := r.wait(tt.now, 2); wait != tt.wait || r.wait(tt.now, tt.total+1) != 0 || tt.total > 0 && r.wait(tt.now, tt.total) == 0 {
			t.Errorf("at %s: %s, not %d", tt.now, wait, tt.total)
		}
	}
	r.add(1000 * time.Hour)
	if r.wait(1000*time.Hour, 1) == 0 || r.wait(1000*time.Hour, 2) != 0 {
		t.Error("an hour long ago is back")
	}
}
