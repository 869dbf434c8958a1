package simulated

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Fault is one way in which a publication goes wrong. Each was met in the wild, or is what a server may do to whoever asks it.
type Fault string

// The closed list of faults. The first group is wrong values on a page that looks right, the second another document than the
// one that was asked for, the third another time, the fourth what happens on the way.
const (
	Zeros         Fault = "zeros"          // every value 0.00: a page before its script filled it
	Swapped       Fault = "swapped"        // buy where sell belongs, and the other way round
	SameTwice     Fault = "same-twice"     // the sell side shown as both
	LostDecimal   Fault = "lost-decimal"   // 58.90 as 5890
	DecimalComma  Fault = "decimal-comma"  // 58.90 as 58,90
	WrongCurrency Fault = "wrong-currency" // each row has the values of the next currency
	MissingSide   Fault = "missing-side"   // no sell
	Footnote      Fault = "footnote"       // 58.90 with a raised 1 behind it
	NotAvailable  Fault = "not-available"  // N/A instead of every value
	Reordered     Fault = "reordered"      // rows the other way round; still right, for whoever goes by their labels

	Layout    Fault = "layout"     // classes, ids, keys and headings renamed
	Challenge Fault = "challenge"  // the page of a bot wall, with status 200
	Forbidden Fault = "forbidden"  // the page of a bot wall, with status 403
	EmptyBody Fault = "empty"      // status 200, no byte
	Half      Fault = "half"       // cut off in the middle, page or workbook
	ErrorPage Fault = "error-page" // an HTML page that says that something went wrong, with status 200, whatever was asked for

	Frozen     Fault = "frozen"      // the document of the day before, and no new one
	FutureDate Fault = "future-date" // dated thirty days ahead

	ServerError   Fault = "server-error"      // status 500
	TooMany       Fault = "too-many-requests" // status 429 with Retry-After
	Hang          Fault = "hang"              // no answer, until the client goes away
	HangBody      Fault = "hang-body"         // half an answer, and then nothing
	Trickle       Fault = "trickle"           // a byte each Config.Pace
	Redirect      Fault = "redirect"          // to another site
	RedirectLoop  Fault = "redirect-loop"     // to itself, for ever
	Huge          Fault = "huge"              // 1 GiB
	Bomb          Fault = "bomb"              // 10 GiB in 10 MB of gzip, or a workbook that unpacks to a hundred times its size
	WrongName     Fault = "wrong-name"        // a certificate of another host
	Expired       Fault = "expired"           // a certificate of years ago
	UnknownSigner Fault = "unknown-signer"    // a certificate by nobody
)

// Faults are all faults, in the order of their list.
func Faults() []Fault {
	return []Fault{
		Zeros, Swapped, SameTwice, LostDecimal, DecimalComma, WrongCurrency, MissingSide, Footnote, NotAvailable, Reordered,
		Layout, Challenge, Forbidden, EmptyBody, Half, ErrorPage,
		Frozen, FutureDate,
		ServerError, TooMany, Hang, HangBody, Trickle, Redirect, RedirectLoop, Huge, Bomb, WrongName, Expired, UnknownSigner,
	}
}

// ReadFault finds a fault by its name.
func ReadFault(name string) (Fault, error) {
	if slices.Contains(Faults(), Fault(name)) {
		return Fault(name), nil
	}
	var names []string
	for _, fault := range Faults() {
		names = append(names, string(fault))
	}
	return "", fmt.Errorf("%q is no fault; want one of %s", name, strings.Join(names, ", "))
}

// ofHandshake reports that the fault shows before any request is sent.
func (f Fault) ofHandshake() bool { return f == WrongName || f == Expired || f == UnknownSigner }

func (f Fault) ofAnswer() bool { return !f.ofHandshake() }

// activeFault is a fault that is on; the zero broken is none.
type activeFault struct {
	fault  Fault
	frozen func() *snapshot // of Frozen: what there was to see the day before its first answer
}

// activeFaults is what is broken, by host or source id.
type activeFaults struct {
	mu       sync.Mutex
	byTarget map[string]activeFault
}

// SetFault switches a fault on until ClearFaults. target is a host name or the id of a definition, with or without demo-. The fault
// of a source affects requests for a document of that source, the fault of a host all its requests. A target has one fault at a time.
func (s *Site) SetFault(target string, fault Fault) error {
	if _, err := ReadFault(string(fault)); err != nil {
		return err
	}
	target, err := s.faultTarget(target, fault)
	if err != nil {
		return err
	}
	on := activeFault{fault: fault}
	if fault == Frozen {
		on.frozen = sync.OnceValue(func() *snapshot { return s.market.snapshot().dayBefore() })
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.byTarget[target] = on
	return nil
}

// ClearFaults switches all faults of a host or source off.
func (s *Site) ClearFaults(target string) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	for _, fault := range []Fault{Hang, WrongName} {
		if known, err := s.faultTarget(target, fault); err == nil {
			delete(s.faults.byTarget, known)
		}
	}
}

// faultTarget is the name under which a fault is kept. A handshake knows no more than the host.
func (s *Site) faultTarget(name string, fault Fault) (string, error) {
	id := strings.TrimPrefix(name, demoPrefix)
	definition, isSource := s.definitions.Find(id)
	switch {
	case isSource && fault.ofHandshake():
		return hostOf(definition), nil
	case isSource:
		return id, nil
	case slices.Contains(s.hosts, name):
		return name, nil
	}
	return "", fmt.Errorf("%q is neither the id of a source nor a host that the simulated site answers for", name)
}

// find returns the first fault that one of the targets has and that matches; the zero activeFault is none.
func (b *activeFaults) find(matches func(Fault) bool, targets ...string) activeFault {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, target := range targets {
		if on, ok := b.byTarget[target]; ok && matches(on.fault) {
			return on
		}
	}
	return activeFault{}
}
