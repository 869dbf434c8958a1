package actors

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// available returns nil if the node can answer reads. It returns an error during the replay and after Close.
func (s *System) available() error {
	switch s.phase.Load() {
	case serving:
		return nil
	case stopping:
		return mailbox.ErrStopped
	}
	return &engine.Error{
		Code: engine.CodeDataUnavailable, Message: "the service is starting",
		RetryAfter: s.progress.retryAfter(s.config.Clock()),
	}
}

// published returns nil if the node can answer reads and has published a rate, else the reason.
func (s *System) published() error {
	if err := s.available(); err != nil {
		return err
	}
	if !s.board.hasRates.Load() {
		return errNoRates
	}
	return nil
}

// askReaders sends a query to a reader. If unready is not nil, it returns that error instead.
func askReaders[Q, A any](s *System, unready error, pool *mailbox.RequestPool[Q, A], query Q) (answer A, err error) {
	if unready != nil {
		return answer, unready
	}
	return pool.AskAny(s.readers, query, accounts.AskTimeout)
}

// Currencies implements engine.Service. Like Institutions and Institution, it answers from Config.Catalogue before the
// first rate.
func (s *System) Currencies() (*engine.Page[engine.CurrencyItem], error) {
	return askReaders(s, s.available(), &s.requestPools.currencies, struct{}{})
}

// Institutions implements engine.Service.
func (s *System) Institutions(q engine.InstitutionsQuery) (*engine.Page[engine.InstitutionItem], error) {
	return askReaders(s, s.available(), &s.requestPools.institutions, q)
}

// Institution implements engine.Service.
func (s *System) Institution(id string) (*engine.InstitutionDetail, error) {
	return askReaders(s, s.available(), &s.requestPools.institution, id)
}

// Rates implements engine.Service.
func (s *System) Rates(q engine.RatesQuery) (*engine.Page[*engine.Rate], error) {
	return askReaders(s, s.published(), &s.requestPools.rates, q)
}

// Ranking implements engine.Service. For an unknown currency it returns an empty page.
func (s *System) Ranking(q engine.RankingQuery) (*engine.Page[*engine.Rate], error) {
	return askReaders(s, s.published(), &s.requestPools.rankings, q)
}

// History implements engine.Service.
func (s *System) History(q engine.HistoryQuery) (*engine.Page[engine.HistoryEntry], error) {
	return askReaders(s, s.published(), &s.requestPools.histories, q)
}

// Slots returns the newest completed slot (scheduled fetch time) of each source; see engine.CompletedSlots. All rates
// of the slot were accepted, and their records are durable.
func (s *System) Slots() (map[string]time.Time, error) {
	if err := s.available(); err != nil {
		return nil, err
	}
	return engine.CompletedSlots(*s.board.snapshots.Load()), nil
}

// Baselines returns the baseline (usual rates, encoded: Refresh.Baseline) of each source at its newest durable slot.
func (s *System) Baselines() (map[string]string, error) {
	if err := s.available(); err != nil {
		return nil, err
	}
	return engine.Baselines(*s.board.snapshots.Load()), nil
}

// Observe implements engine.Ingester. A refresh contains the observations (rates) of one source at one time. Observe
// splits the refreshes by currency. The currency actors work in parallel, and the journal appends their results in
// common batches, so one call with many refreshes is faster than many calls. After an error the receipt counts only the
// durable observations. The caller may then send all refreshes again: repeated observations change nothing.
func (s *System) Observe(refreshes []engine.Refresh) (engine.Receipt, error) {
	if s.log.Shared != nil {
		r, err := s.lead(leaderQuery{Operation: "Observe", Refreshes: refreshes})
		return r.Receipt, err
	}
	return s.observe(refreshes)
}

// observe is Observe on the node that decides.
func (s *System) observe(refreshes []engine.Refresh) (engine.Receipt, error) {
	if err := s.beginChange(); err != nil {
		return engine.Receipt{}, err
	}
	defer s.calls.leave()
	parts, refused := engine.SplitByCurrency(s.config.Catalogue, refreshes)
	call := &observeCall{system: s, remaining: parts, receipt: engine.Receipt{Refused: refused}}
	var err error
	for err == nil && len(call.remaining) > 0 {
		err = call.sendRound()
	}
	slices.SortFunc(call.receipt.Refused, func(a, b engine.Refusal) int {
		return cmp.Or(cmp.Compare(a.Refresh, b.Refresh), cmp.Compare(a.Index, b.Index))
	})
	return call.receipt, err
}

// beginChange is beginCall for a change. It also returns an error if this node of a cluster accepts no change.
func (s *System) beginChange() error {
	if s.available() == nil {
		if problem := s.log.WriteProblem(); problem != nil {
			return commitlog.ReadOnly(problem)
		}
	}
	return s.beginCall()
}

// beginCall begins a method that uses the journal. It returns an error if the node cannot use the journal. If it
// returns nil, the method must end with s.calls.leave; Close waits for that.
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

// observeCall is the state of one call of Observe.
type observeCall struct {
	system    *System
	remaining map[string][]engine.CurrencyRefresh // unsent refreshes, by currency
	receipt   engine.Receipt
}

// sentCommand is a command sent to a currency actor, and its refreshes.
type sentCommand struct {
	command *command
	parts   []engine.CurrencyRefresh // the refreshes in the command
}

// sendRound sends one command to each currency that has remaining refreshes, and waits for all answers.
func (call *observeCall) sendRound() error {
	if err := call.system.available(); err != nil {
		return err
	}
	var sent []sentCommand
	for _, code := range call.system.codes {
		if parts := call.nextCommand(code); len(parts) > 0 {
			sent = append(sent, sentCommand{mailbox.NewRequest[engine.Command, engine.Receipt](observeParts(parts)), parts})
			call.system.currencies[code].Send(sent[len(sent)-1].command)
		}
	}
	var firstErr error
	for _, s := range sent {
		receipt, err := s.command.Wait(call.system.config.WriteTimeout)
		if err != nil {
			firstErr = cmp.Or(firstErr, call.system.accounts.Majority.ChangeError(err))
			continue
		}
		call.add(receipt, s.parts)
	}
	return firstErr
}

// nextCommand removes the next refreshes of a currency from remaining. It returns as many as fit into one command.
func (call *observeCall) nextCommand(code string) []engine.CurrencyRefresh {
	parts := call.remaining[code]
	n, observations := 0, 0
	for n < len(parts) {
		observations += len(parts[n].Refresh.Observations)
		if n > 0 && observations > commandObservationsMax {
			break
		}
		n++
	}
	if n == len(parts) {
		delete(call.remaining, code)
	} else {
		call.remaining[code] = parts[n:]
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

// add adds the receipt of one command to the receipt of the call. It converts the indexes of refused observations from
// the command's refreshes to those of the call.
func (call *observeCall) add(receipt engine.Receipt, parts []engine.CurrencyRefresh) {
	call.receipt.Accepted += receipt.Accepted
	call.receipt.Changed += receipt.Changed
	call.receipt.Repeated += receipt.Repeated
	for _, n := range receipt.Notices {
		call.system.config.Logger.Warn("rate "+n.Text, "rate", n.RateID, "source", n.SourceID)
	}
	call.receipt.Notices = append(call.receipt.Notices, receipt.Notices...)
	for _, refusal := range receipt.Refused {
		part := &parts[refusal.Refresh]
		refusal.Refresh, refusal.Index = part.RefreshIndex, part.ObservationIndex[refusal.Index]
		call.receipt.Refused = append(call.receipt.Refused, refusal)
	}
}

// Execute sends an operator's command (engine.Withdraw, engine.Release or engine.Reject) to the actor of a currency. If
// the error is nil, the change is durable and published. CodeNotFound means that the currency, the quote or the
// QuarantineID does not exist. Execute rejects engine.Observe.
func (s *System) Execute(currency string, c engine.Command) (engine.Receipt, error) {
	q := leaderQuery{Currency: currency}
	switch c := c.(type) {
	case engine.Withdraw:
		q.Operation, q.Withdraw = "Withdraw", c
	case engine.Release:
		q.Operation, q.Release = "Release", c
	case engine.Reject:
		q.Operation, q.Reject = "Reject", c
	default:
		return engine.Receipt{}, &engine.Error{
			Code: engine.CodeInvalidParameters, Message: "the command of an operator must be Withdraw, Release or Reject",
			Cause: errors.New("use Observe, which splits the observations by currency"),
		}
	}
	if s.log.Shared == nil {
		return s.execute(currency, c)
	}
	r, err := s.lead(q)
	return r.Receipt, err
}

// execute is Execute on the node that decides.
func (s *System) execute(currency string, c engine.Command) (engine.Receipt, error) {
	if err := s.beginChange(); err != nil {
		return engine.Receipt{}, err
	}
	defer s.calls.leave()
	ref, known := s.currencies[currency]
	if !known {
		return engine.Receipt{}, noCurrency(currency)
	}
	return commitlog.AskChange[engine.Receipt](ref, c, s.config.WriteTimeout, s.accounts.Majority)
}

// Quarantine returns the quarantined observations of a currency, oldest first. "" = all currencies, ordered by code.
// The slice is shared: do not modify it.
func (s *System) Quarantine(currency string) ([]engine.Quarantined, error) {
	if err := s.available(); err != nil {
		return nil, err
	}
	snapshots := *s.board.snapshots.Load()
	if currency == "" {
		var all []engine.Quarantined
		for _, snapshot := range snapshots {
			all = append(all, snapshot.Quarantine()...)
		}
		return all, nil
	}
	i, known := slices.BinarySearch(s.codes, currency)
	if !known {
		return nil, noCurrency(currency)
	}
	return snapshots[i].Quarantine(), nil
}

func noCurrency(code string) *engine.Error {
	return &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("there is no currency %q", code)}
}
