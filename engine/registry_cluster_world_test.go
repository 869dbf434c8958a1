package engine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// deskWorld is who may log in on several nodes, with true time, clocks of different origins, and one log in which a decision that was made
// without the record before it has no place and is made again. What stands in the log is held against the rules by themselves: they know
// each code as it was sent.
type deskWorld struct {
	pick   func(n int) int
	bug    deskBug
	random dice
	start  time.Time
	real   time.Duration
	log    []deskRecord
	nodes  []*deskNode
	runs   int
	drawn  int
	fault  string

	texts    map[string]string // code sent last to an address
	codes    map[string]*deskCode
	accounts map[string]uint64 // by address
	opened   int
	void     int
	failed   int
}

// deskBug is planted.
type deskBug struct {
	only    string
	learnt  func(*Registry, RegistryEvent)
	void    func(*Registry, RegistryEvent) // instead of Void
	stale   bool
	joined  func(*RegistryState)
	keyless bool
}

// deskRecord is an event with what the world knows of it.
type deskRecord struct {
	event RegistryEvent
	run   int
	real  time.Duration // when it was decided
	text  string        // of the code that was sent, or tried
	older bool          // tried while another code was on its way from the same node
}

// deskCode is a code as the log tells it.
type deskCode struct {
	text  string
	real  time.Duration
	tries int
}

// deskDecision is on its way into the log.
type deskDecision struct {
	record deskRecord
	again  func() (deskRecord, bool) // false when it is refused
}

type deskNode struct {
	world    *deskWorld
	run      int
	wall     time.Duration
	began    time.Duration
	origin   time.Duration
	place    int
	cut      bool
	registry *Registry
	flight   []deskDecision
	knew     int
}

func newDeskWorld(pick func(int) int, bug deskBug) *deskWorld {
	w := &deskWorld{
		pick: pick, bug: bug, random: newDice(6), start: at("2026-06-18T03:30:00Z"), texts: map[string]string{}, codes: map[string]*deskCode{},
		accounts: map[string]uint64{},
	}
	for i := range 3 {
		n := &deskNode{world: w, wall: time.Duration(i-1) * time.Second}
		w.nodes = append(w.nodes, n)
		n.begin(nil, 0, time.Duration(pick(4)*i)*17*time.Minute)
	}
	return w
}

func (w *deskWorld) fail(format string, args ...any) {
	if w.fault == "" && strings.Contains(format, w.bug.only) {
		w.fault = fmt.Sprintf("at %s: ", w.real) + fmt.Sprintf(format, args...)
	}
}

// begin is a new process: from a state after so many records, and the records behind it.
func (n *deskNode) begin(state *RegistryState, from int, origin time.Duration) {
	w := n.world
	w.runs++
	n.run, n.began, n.flight, n.place = w.runs, w.real, nil, max(n.place, from)
	key := [32]byte{1}
	if n.registry = NewRegistry(key); state != nil {
		n.registry = RestoreRegistry(*state, key)
	}
	if !w.bug.keyless {
		n.registry.Share()
	}
	for _, record := range w.log[from:n.place] {
		n.registry.Apply(record.event)
	}
	n.origin = max(origin, n.registry.newest)
	n.registry.Resume(n.now())
}

func (n *deskNode) now() Moment {
	return Moment{Wall: n.world.start.Add(n.world.real + n.wall), Steady: n.origin + n.world.real - n.began}
}

// offer decides, and sends what was decided on its way.
func (n *deskNode) offer(decide func(again bool) (deskRecord, bool)) {
	record, decided := decide(false)
	if !decided {
		return
	}
	if len(n.flight) == 0 {
		n.knew = n.place
	}
	n.flight = append(n.flight, deskDecision{record, func() (deskRecord, bool) { return decide(true) }})
}

func (n *deskNode) requestCode(email string) {
	w := n.world
	secret, _ := NewCode(w.random)
	from := (&loginWorld{drawn: w.next()}).client()
	n.offer(func(again bool) (deskRecord, bool) {
		ask := func() (*CodeIssued, error) { return n.registry.RequestCode(idOf(email), from, n.now()) }
		if again {
			ask = func() (*CodeIssued, error) { return n.registry.RequestCodeAgain(idOf(email), n.now()) }
		}
		event, err := ask()
		if err != nil {
			return deskRecord{}, false
		}
		n.registry.Seal(event, secret)
		if strings.Contains(fmt.Sprint(event), secret.Reveal()) {
			w.fail("the log shows the code")
		}
		return deskRecord{event: event, run: n.run, real: w.real, text: secret.Reveal()}, true
	})
}

func (w *deskWorld) next() int {
	w.drawn++
	return w.drawn
}

// tryCode tries the code that was sent last, or a wrong one.
func (n *deskNode) tryCode(email string, right bool) {
	w := n.world
	text := w.texts[email]
	if text == "" {
		text = "00000000"
	}
	if !right {
		text = not(text)
	}
	token := digestOf(fmt.Sprint("token", w.next()))
	from := (&loginWorld{drawn: w.next()}).client()
	n.offer(func(again bool) (deskRecord, bool) {
		try := func() (RegistryEvent, error) { return n.registry.TryCode(idOf(email), text, token, from, n.now()) }
		if again {
			try = func() (RegistryEvent, error) { return n.registry.TryCodeAgain(idOf(email), text, token, n.now()) }
		}
		event, err := try()
		if _, isOpened := event.(*SessionOpened); right && !isOpened {
			w.judgeRefusal(n, email, text, err)
		}
		return deskRecord{event: event, run: n.run, real: w.real, text: text, older: n.asked(email)}, event != nil
	})
}

// asked reports that a code for an address is on its way from this node.
func (n *deskNode) asked(email string) bool {
	return slices.ContainsFunc(n.flight, func(d deskDecision) bool {
		e, issued := d.record.event.(*CodeIssued)
		return issued && e.Email == idOf(email)
	})
}

// judgeRefusal: a node that has heard everything knows the code that was sent last, wherever it was asked for.
func (w *deskWorld) judgeRefusal(n *deskNode, email, text string, err error) {
	code := w.codes[email]
	if code == nil || n.place < len(w.log) || len(n.flight) > 0 || code.text != text || code.tries >= CodeTriesMax ||
		w.real-code.real > CodeLifetime-5*time.Second || n.registry.blocked(idOf(email), n.now()) {
		return
	}
	w.fail("a code of %s is refused: %v", w.real-code.real, err)
}

// land gives what a node has decided its place, unless another record has it.
func (n *deskNode) land() {
	w := n.world
	if len(n.flight) == 0 || n.cut || n.knew != len(w.log) && !w.bug.stale {
		return
	}
	for _, d := range n.flight {
		w.log = append(w.log, d.record)
		w.judge(&d.record)
	}
	n.flight = nil
	n.deliver(len(w.log))
}

// judge holds a record against the rules.
func (w *deskWorld) judge(record *deskRecord) {
	switch e := record.event.(type) {
	case *CodeIssued:
		if email := worldText(e.Email); e.Mailed {
			w.texts[email], w.codes[email] = record.text, &deskCode{text: record.text, real: record.real}
		}
	case *CodeFailed:
		w.failed++
		if code := w.codes[worldText(e.Email)]; code != nil {
			code.tries++
		}
	case *SessionOpened:
		w.opened++
		email := worldText(e.Email)
		switch code := w.codes[email]; {
		case code == nil:
			w.fail("a session without a code")
		case code.text != record.text && !record.older:
			w.fail("a session by an older code")
		case code.tries >= CodeTriesMax:
			w.fail("a session after %d tries", code.tries)
		case record.real-code.real > CodeLifetime+5*time.Second:
			w.fail("a session after %s", record.real-code.real)
		}
		delete(w.codes, email)
		w.judgeAccount(email, e)
	}
}

func (w *deskWorld) judgeAccount(email string, e *SessionOpened) {
	if known := w.accounts[email]; known != 0 && known != e.Account {
		w.fail("account of %s: %d, before %d", email, e.Account, known)
	}
	for other, account := range w.accounts {
		if account == e.Account && other != email {
			w.fail("account of %s is %d, which is that of %s", email, e.Account, other)
		}
	}
	w.accounts[email] = e.Account
}

// deliver brings a node so many records. What it has on its way was decided without those of others: it is decided again.
func (n *deskNode) deliver(count int) {
	w := n.world
	for ; count > 0 && n.place < len(w.log) && !n.cut; count-- {
		record := w.log[n.place]
		n.place++
		if record.run == n.run {
			n.registry.Apply(record.event)
			if e, issued := record.event.(*CodeIssued); issued {
				n.registry.Issue(e, SecretOf(record.text))
			}
			continue
		}
		void := n.flight
		n.flight = nil
		for _, d := range slices.Backward(void) {
			w.void++
			w.take(n.registry, d.record.event)
		}
		n.registry.Learn(record.event, n.now())
		if w.bug.learnt != nil {
			w.bug.learnt(n.registry, record.event)
		}
		n.knew = n.place
		for _, d := range void {
			if again, decided := d.again(); decided {
				n.flight = append(n.flight, deskDecision{again, d.again})
			}
		}
	}
}

// take takes a decision back.
func (w *deskWorld) take(r *Registry, event RegistryEvent) {
	if w.bug.void != nil {
		w.bug.void(r, event)
		return
	}
	r.Void(event)
}

// crash begins another process from what this node keeps, or another one does.
func (n *deskNode) crash() {
	w := n.world
	if w.pick(2) == 0 {
		n.land()
	}
	other := w.nodes[w.pick(len(w.nodes))]
	state, from, origin := other.registry.State(), other.place, other.now().Steady
	if w.bug.joined != nil {
		w.bug.joined(&state)
	}
	if w.pass(); w.pick(2) == 0 {
		n.begin(nil, 0, n.origin)
	} else {
		n.begin(&state, from, origin)
	}
}

func (w *deskWorld) pass() {
	spans := []time.Duration{0, time.Millisecond, time.Second, time.Second, 10 * time.Second, time.Minute, 61 * time.Second, 4 * time.Minute, 11 * time.Minute}
	w.real += spans[w.pick(len(spans))]
}

func (w *deskWorld) step() {
	n := w.nodes[w.pick(len(w.nodes))]
	email := fmt.Sprintf("%d@b.do", w.pick(2))
	switch kind := w.pick(60); {
	case kind < 8:
		n.requestCode(email)
	case kind < 20:
		n.tryCode(email, w.pick(2) == 0)
	case kind < 34:
		n.land()
	case kind < 48:
		n.deliver(1 + w.pick(4))
	case kind < 57:
		w.pass()
	case kind == 57:
		n.cut = !n.cut
	default:
		n.crash()
	}
}

// live runs so many steps or to the first fault. At the end all nodes know the same of addresses and accounts.
func (w *deskWorld) live(steps int) string {
	for range steps {
		if w.step(); w.fault != "" {
			return w.fault
		}
	}
	var first RegistryState
	for i, n := range w.nodes {
		n.cut = false
		n.deliver(len(w.log))
		state := n.registry.State()
		for j := range state.Addresses {
			state.Addresses[j].Again, state.Addresses[j].Touched = 0, 0
		}
		if i == 0 {
			first = state
		}
		if !reflect.DeepEqual(state.Addresses, first.Addresses) || state.LastID != first.LastID {
			w.fail("nodes know %+v and %+v", state, first)
		}
		if n.registry.trying < 0 || n.registry.asking < 0 || len(n.flight) == 0 && n.registry.trying+n.registry.asking > 0 {
			w.fail("%d tries and %d codes are on their way of %d", n.registry.trying, n.registry.asking, len(n.flight))
		}
	}
	return w.fault
}
