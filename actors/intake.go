package actors

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/actors/yield"
	"github.com/tasard/tasard/engine"
)

// Observe implements engine.Ingester. It splits the refreshes by currency; the currencies decide in parallel and the
// journal makes their decisions durable together, so many refreshes in one call are faster than one by one. If an error
// ends it early, the receipt counts what is durable; the remaining refreshes can be sent again, because repeated
// observations change nothing.
func (s *System) Observe(refreshes []engine.Refresh) (engine.Receipt, error) {
	if err := s.beginChange(); err != nil {
		return engine.Receipt{}, err
	}
	defer s.calls.leave()
	parts, refused := s.split(refreshes)
	in := &intake{system: s, remaining: parts, receipt: engine.Receipt{Refused: refused}}
	var err error
	for err == nil && len(in.remaining) > 0 {
		err = in.sendRound()
	}
	slices.SortFunc(in.receipt.Refused, func(a, b engine.Refusal) int {
		return cmp.Or(cmp.Compare(a.Refresh, b.Refresh), cmp.Compare(a.Index, b.Index))
	})
	return in.receipt, err
}

// split yields as an actor's job does, so that the caller's goroutine does not delay readers.
func (s *System) split(refreshes []engine.Refresh) (map[string][]engine.CurrencyRefresh, []engine.Refusal) {
	var network yield.Network
	defer network.Close()
	return engine.SplitByCurrency(s.config.Catalogue, refreshes, network.Yield)
}

// beginChange admits a call that changes something. The caller must call s.calls.leave.
func (s *System) beginChange() error {
	if s.available() == nil && s.accounts.Quorum.Lost() {
		return commitlog.ReadOnly(commitlog.ErrNoMajority)
	}
	return s.beginCall()
}

// accountsHost is the System as the accounts see it.
type accountsHost struct{ *System }

// Available returns nil while the state is complete.
func (c accountsHost) Available() error { return c.available() }

// BeginChange admits a call that changes something. EndChange must follow.
func (c accountsHost) BeginChange() error { return c.beginChange() }

// EndChange ends a call that BeginChange admitted.
func (c accountsHost) EndChange() { c.calls.leave() }

// beginCall admits a call that needs the journal. The caller must call s.calls.leave.
func (s *System) beginCall() error {
	if err := s.available(); err != nil {
		return err
	}
	if cause := s.Err(); cause != nil {
		return commitlog.ReadOnly(cause)
	}
	if !s.calls.enter() {
		return mailbox.ErrStopped
	}
	return nil
}

// intake is a call of Observe.
type intake struct {
	system    *System
	remaining map[string][]engine.CurrencyRefresh // by currency
	receipt   engine.Receipt
}

// sentCommand is a command and the refreshes in it.
type sentCommand struct {
	command *command
	parts   []engine.CurrencyRefresh
}

// sendRound sends each currency its next command and waits for all of them.
func (in *intake) sendRound() error {
	if err := in.system.available(); err != nil {
		return err
	}
	var sent []sentCommand
	for _, code := range in.system.codes {
		if parts := in.nextCommand(code); len(parts) > 0 {
			sent = append(sent, sentCommand{mailbox.NewQuestion[engine.Command, engine.Receipt](observeParts(parts)), parts})
			in.system.currencies[code].Send(sent[len(sent)-1].command)
		}
	}
	var failed error
	for _, o := range sent {
		receipt, err := o.command.Wait(in.system.config.WriteTimeout)
		if err != nil {
			failed = cmp.Or(failed, in.system.accounts.Quorum.TimeoutError(err))
			continue
		}
		in.add(receipt, o.parts)
	}
	return failed
}

// nextCommand removes as many refreshes of a currency as fit into one command.
func (in *intake) nextCommand(code string) []engine.CurrencyRefresh {
	parts := in.remaining[code]
	n, observations := 0, 0
	for n < len(parts) {
		observations += len(parts[n].Refresh.Observations)
		if n > 0 && observations > commandObservationsMax {
			break
		}
		n++
	}
	if n == len(parts) {
		delete(in.remaining, code)
	} else {
		in.remaining[code] = parts[n:]
	}
	return parts[:n]
}

func observeParts(parts []engine.CurrencyRefresh) engine.Command {
	refreshes := make([]engine.Refresh, len(parts))
	for i := range parts {
		refreshes[i] = parts[i].Refresh
	}
	return engine.Observe{Refreshes: refreshes}
}

// add adds a receipt, with positions in the refreshes of the caller.
func (in *intake) add(receipt engine.Receipt, parts []engine.CurrencyRefresh) {
	in.receipt.Accepted += receipt.Accepted
	in.receipt.Changed += receipt.Changed
	in.receipt.Repeated += receipt.Repeated
	for _, refusal := range receipt.Refused {
		part := &parts[refusal.Refresh]
		refusal.Refresh, refusal.Index = part.RefreshIndex, part.ObservationIndex[refusal.Index]
		in.receipt.Refused = append(in.receipt.Refused, refusal)
	}
}

// Execute has a currency execute a command of an operator: engine.Withdraw, engine.Release or engine.Reject. When it
// returns without an error the change is durable and published. CodeNotFound: the currency, quote or quarantine number
// does not exist. Observations go to Observe.
func (s *System) Execute(currency string, c engine.Command) (engine.Receipt, error) {
	if _, observe := c.(engine.Observe); observe || c == nil {
		return engine.Receipt{}, &engine.Error{
			Code: engine.CodeInvalidParameters, Message: "the command of an operator must be Withdraw, Release or Reject",
			Cause: errors.New("observations are split by currency: use Observe"),
		}
	}
	if err := s.beginChange(); err != nil {
		return engine.Receipt{}, err
	}
	defer s.calls.leave()
	owner, err := s.currencyRef(currency)
	if err != nil {
		return engine.Receipt{}, err
	}
	return commitlog.AskChange[engine.Receipt](owner, c, s.config.WriteTimeout, s.accounts.Quorum)
}

// Quarantine returns the quarantine of one currency, oldest first, or with "" the quarantines of all, by currency. The
// slice is shared and must not be changed.
func (s *System) Quarantine(currency string) ([]engine.Quarantined, error) {
	if err := s.available(); err != nil {
		return nil, err
	}
	if currency == "" {
		return s.askers.quarantine.Ask(s.directory, quarantineQuery{}, accounts.AskTimeout)
	}
	owner, err := s.currencyRef(currency)
	if err != nil {
		return nil, err
	}
	return s.askers.quarantine.Ask(owner, quarantineQuery{}, accounts.AskTimeout)
}

func (s *System) currencyRef(currency string) (*mailbox.Ref, error) {
	owner, ok := s.currencies[currency]
	if !ok {
		return nil, &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("there is no currency %q", currency)}
	}
	return owner, nil
}
