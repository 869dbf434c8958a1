package simulated

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Fault is one way in which a publication goes wrong. Real sites show most of them; the others are attacks.
type Fault string

// The faults: wrong values on a page that looks right, another document than the requested one, a wrong time, and
// failures of the transfer.
const (
	Zeros         Fault = "zeros"          // every value is 0.00, as in a page before its script fills it
	Swapped       Fault = "swapped"        // buy and sell exchanged
	SameTwice     Fault = "same-twice"     // the sell side shown as both sides
	LostDecimal   Fault = "lost-decimal"   // 58.90 as 5890
	DecimalComma  Fault = "decimal-comma"  // 58.90 as 58,90
	WrongCurrency Fault = "wrong-currency" // each row has the values of the next currency
	MissingSide   Fault = "missing-side"   // no sell
	Footnote      Fault = "footnote"       // 58.90 with a superscript 1 after it
	NotAvailable  Fault = "not-available"  // N/A instead of every value
	Reordered     Fault = "reordered"      // rows in reverse order; still correct for a reader that goes by labels

	Layout    Fault = "layout"     // classes, ids, keys and headings renamed
	Challenge Fault = "challenge"  // the challenge page of a bot wall, with status 200
	Forbidden Fault = "forbidden"  // the challenge page of a bot wall, with status 403
	EmptyBody Fault = "empty"      // status 200 with an empty body
	Half      Fault = "half"       // page or workbook cut off in the middle
	ErrorPage Fault = "error-page" // an HTML error page with status 200, for any request

	Frozen     Fault = "frozen"      // the document of the day before, from now on
	FutureDate Fault = "future-date" // dated thirty days ahead

	ServerError   Fault = "server-error"      // status 500
	TooMany       Fault = "too-many-requests" // status 429 with Retry-After
	Hang          Fault = "hang"              // no response until the client gives up
	HangBody      Fault = "hang-body"         // half a response, then nothing
	Trickle       Fault = "trickle"           // one byte each second
	Redirect      Fault = "redirect"          // to another site
	RedirectLoop  Fault = "redirect-loop"     // to itself
	Huge          Fault = "huge"              // 1 GiB
	Bomb          Fault = "bomb"              // 10 GiB in 10 MB of gzip, or a workbook that decompresses to a hundred times its size
	WrongName     Fault = "wrong-name"        // the certificate of another host
	Expired       Fault = "expired"           // a certificate that expired years ago
	UnknownSigner Fault = "unknown-signer"    // a certificate of an unknown authority
)

// Faults returns all faults in order.
func Faults() []Fault {
	return []Fault{
		Zeros, Swapped, SameTwice, LostDecimal, DecimalComma, WrongCurrency, MissingSide, Footnote, NotAvailable, Reordered,
		Layout, Challenge, Forbidden, EmptyBody, Half, ErrorPage,
		Frozen, FutureDate,
		ServerError, TooMany, Hang, HangBody, Trickle, Redirect, RedirectLoop, Huge, Bomb, WrongName, Expired, UnknownSigner,
	}
}

// affectsHandshake reports whether the fault shows in the TLS handshake, before any request.
func (f Fault) affectsHandshake() bool { return f == WrongName || f == Expired || f == UnknownSigner }

func (f Fault) affectsResponse() bool { return !f.affectsHandshake() }

// activeFault is a fault that is switched on; the zero value means no fault.
type activeFault struct {
	fault  Fault
	frozen func() *snapshot // only for Frozen: the market on the day before the first response
}

// activeFaults are the active faults by host or source id.
type activeFaults struct {
	mu       sync.Mutex
	byTarget map[string]activeFault
}

// SetFault switches a fault on until ClearFaults. target is a host name or the id of a definition, with or without
// demo-. The fault of a source affects requests for a document of that source, the fault of a host all its requests.
// A target has one fault at a time.
func (s *Site) SetFault(target string, fault Fault) error {
	if !slices.Contains(Faults(), fault) {
		return fmt.Errorf("%q is not a fault; want one of %q", fault, Faults())
	}
	target, err := s.faultTarget(target, fault)
	if err != nil {
		return err
	}
	active := activeFault{fault: fault}
	if fault == Frozen {
		active.frozen = sync.OnceValue(func() *snapshot { return s.market.snapshot().dayBefore() })
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.byTarget[target] = active
	return nil
}

// ClearFaults switches off all faults of a host or source.
func (s *Site) ClearFaults(target string) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	for _, fault := range []Fault{Hang, WrongName} {
		if key, err := s.faultTarget(target, fault); err == nil {
			delete(s.faults.byTarget, key)
		}
	}
}

// faultTarget returns the key of a fault in byTarget. For a source and a fault of the handshake it is the host of the
// source.
func (s *Site) faultTarget(name string, fault Fault) (string, error) {
	id := strings.TrimPrefix(name, demoPrefix)
	definition, isSource := s.definitions.Find(id)
	switch {
	case isSource && fault.affectsHandshake():
		return hostOf(definition), nil
	case isSource:
		return id, nil
	case slices.Contains(s.hosts, name):
		return name, nil
	}
	return "", fmt.Errorf("%q is neither the id of a source nor a host that the simulated site answers for", name)
}

// find returns the fault of the first target that has a matching one, otherwise the zero activeFault.
func (a *activeFaults) find(matches func(Fault) bool, targets ...string) activeFault {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, target := range targets {
		if active, ok := a.byTarget[target]; ok && matches(active.fault) {
			return active
		}
	}
	return activeFault{}
}
