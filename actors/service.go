package actors

import (
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
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
	return askReaders(s, s.available(), &s.requestPools.currencies, currenciesQuery{})
}

// Institutions implements engine.Service.
func (s *System) Institutions(q engine.InstitutionsQuery) (*engine.Page[engine.InstitutionItem], error) {
	return askReaders(s, s.available(), &s.requestPools.institutions, q)
}

// Institution implements engine.Service.
func (s *System) Institution(id string) (*engine.InstitutionDetail, error) {
	return askReaders(s, s.available(), &s.requestPools.institution, institutionQuery{id})
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
