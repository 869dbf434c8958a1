package simulated

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Fault is a defect of a website with rates, which the simulated site can imitate. Real sites have most of these
// faults; the others are attacks.
type Fault string

// Faults in four groups: wrong prices, wrong documents, wrong dates, failures of the transfer.
const (
	Zeros         Fault = "zeros"          // every price is 0.00, as in a page before its script has filled it
	Swapped       Fault = "swapped"        // buy and sell are exchanged
	SameTwice     Fault = "same-twice"     // both sides show the sell price
	LostDecimal   Fault = "lost-decimal"   // 5890 instead of 58.90
	DecimalComma  Fault = "decimal-comma"  // 58,90 instead of 58.90
	WrongCurrency Fault = "wrong-currency" // each quote has the prices of another currency
	MissingSide   Fault = "missing-side"   // the sell side is missing
	Footnote      Fault = "footnote"       // a superscript 1 follows each price
	NotAvailable  Fault = "not-available"  // N/A instead of every price
	Reordered     Fault = "reordered"      // rows in reverse order, with the right labels

	Layout    Fault = "layout"     // classes, ids, keys and headings are renamed
	Challenge Fault = "challenge"  // challenge page of a bot protection, with status 200
	Forbidden Fault = "forbidden"  // challenge page of a bot protection, with status 403
	EmptyBody Fault = "empty"      // status 200 with an empty body
	Half      Fault = "half"       // page or workbook that is cut off in the middle
	ErrorPage Fault = "error-page" // HTML error page with status 200, for any request

	Frozen     Fault = "frozen"      // the document never changes: prices and dates of the day before
	FutureDate Fault = "future-date" // all dates are 30 days later

	ServerError   Fault = "server-error"      // status 500
	TooMany       Fault = "too-many-requests" // status 429 with Retry-After
	Hang          Fault = "hang"              // no response until the client gives up
	HangBody      Fault = "hang-body"         // half of the response, and no end
	Trickle       Fault = "trickle"           // one byte each second
	Redirect      Fault = "redirect"          // redirect to another site
	RedirectLoop  Fault = "redirect-loop"     // redirect to the same address
	Huge          Fault = "huge"              // a response of 1 GiB
	Bomb          Fault = "bomb"              // 10 GiB in 10 MB of gzip, or a workbook that decompresses to 100 times its size
	WrongName     Fault = "wrong-name"        // certificate of another host
	Expired       Fault = "expired"           // certificate that expired years ago
	UnknownSigner Fault = "unknown-signer"    // certificate of an authority that is not in Roots
)

// Faults returns all faults.
func Faults() []Fault {
	return []Fault{
		Zeros, Swapped, SameTwice, LostDecimal, DecimalComma, WrongCurrency, MissingSide, Footnote, NotAvailable, Reordered,
		Layout, Challenge, Forbidden, EmptyBody, Half, ErrorPage,
		Frozen, FutureDate,
		ServerError, TooMany, Hang, HangBody, Trickle, Redirect, RedirectLoop, Huge, Bomb, WrongName, Expired, UnknownSigner,
	}
}

// affectsHandshake reports whether the fault affects the TLS handshake instead of a response.
func (f Fault) affectsHandshake() bool { return f == WrongName || f == Expired || f == UnknownSigner }

func (f Fault) affectsResponse() bool { return !f.affectsHandshake() }

// activeFault is a fault that SetFault has set. The zero value means no fault.
type activeFault struct {
	fault  Fault
	frozen func() *snapshot // for Frozen: the market of the day before the first such response
}

// activeFaults has the active faults of a Site.
type activeFaults struct {
	mu       sync.Mutex
	byTarget map[string]activeFault // by host or source id
}

// SetFault sets the fault of a target, until ClearFaults or another SetFault. target is a host name or the id of a
// source, with or without the prefix demo-. The fault of a host affects all its responses. The fault of a source
// affects only the documents of the source or, for a fault of the TLS handshake, its host.
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

// ClearFaults removes the fault of a target.
func (s *Site) ClearFaults(target string) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	for _, fault := range []Fault{Hang, WrongName} {
		if key, err := s.faultTarget(target, fault); err == nil {
			delete(s.faults.byTarget, key)
		}
	}
}

// faultTarget returns the key of a fault in activeFaults.byTarget. A TLS handshake is with a host and not with a
// source. So for a source with a fault of the handshake, the key is the host of the source.
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

// find looks at the faults of the targets in order. It returns the first fault for which matches returns true, or the
// zero activeFault if there is none.
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
