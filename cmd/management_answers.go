package cmd

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// codeUnprepared refuses what the settings of the node do not allow.
const codeUnprepared engine.Code = "unprepared"

// codeLeaving refuses what takes longer than the node has, which is on its way down.
const codeLeaving engine.Code = "leaving"

// unsafeMail is why --mail=log and required keys exclude each other.
const unsafeMail = "this node runs with --mail=log, which lets whoever reads its output sign in as anybody; " +
	"start it with --smtp-addr or --mail=off"

// What tasard admin is answered. Instants that have not come are left out.
type (
	// listedAccount is an account in a list: its address is masked.
	listedAccount struct {
		ID         uint64      `json:"id"`
		Email      string      `json:"email"`
		CreatedAt  time.Time   `json:"createdAt"`
		ActiveKeys int         `json:"activeKeys"`
		Suspended  bool        `json:"suspended"`
		Limits     shownLimits `json:"limits"`
		SpentToday int         `json:"spentToday"`
	}
	// shownLimits are the limits in force; Own tells whether the account has any of its own.
	shownLimits struct {
		Day    int  `json:"day"`
		Minute int  `json:"minute"`
		Own    bool `json:"own"`
	}
	shownAccount struct {
		ID          uint64      `json:"id"`
		Email       string      `json:"email"`
		CreatedAt   time.Time   `json:"createdAt"`
		SuspendedAt time.Time   `json:"suspendedAt,omitzero"`
		Reason      string      `json:"reason,omitempty"`
		Limits      shownLimits `json:"limits"`
		Day         shownWindow `json:"day"`
		Minute      shownWindow `json:"minute"`
		Keys        []shownKey  `json:"keys"`
	}
	shownWindow struct {
		Limit     int       `json:"limit"`
		Remaining int       `json:"remaining"`
		ResetAt   time.Time `json:"resetAt"`
	}
	shownKey struct {
		ID         string    `json:"id"`
		Name       string    `json:"name"`
		Hint       string    `json:"hint"`
		CreatedAt  time.Time `json:"createdAt"`
		RevokedAt  time.Time `json:"revokedAt,omitzero"`
		LastUsedAt time.Time `json:"lastUsedAt,omitzero"`
	}
	// shownTransition: State is optional, announced or required.
	shownTransition struct {
		State       string    `json:"state"`
		RequiredAt  time.Time `json:"requiredAt,omitzero"`
		AnnouncedAt time.Time `json:"announcedAt,omitzero"`
		By          string    `json:"by,omitempty"`
		Mail        string    `json:"mail"`
	}
)

// The states of the transition.
const (
	keysOptional  = "optional"
	keysAnnounced = "announced"
	keysRequired  = "required"
)

func (m *management) limits(own engine.Allowance) shownLimits {
	return shownLimits{
		cmp.Or(own.Day, m.allowance.Day), cmp.Or(own.Minute, m.allowance.Minute), own != engine.Allowance{},
	}
}

func windowOf(w engine.Window) shownWindow { return shownWindow{w.Limit, w.Remaining, w.Reset} }

// listAccounts writes one line for each account, so that a long list is never whole in memory.
func (m *management) listAccounts(w http.ResponseWriter, _ *http.Request) {
	accounts, err := m.node.ListAccounts()
	if err != nil {
		refuseAdmin(w, err)
		return
	}
	slices.SortFunc(accounts, func(a, b engine.AccountSummary) int { return cmp.Compare(a.ID, b.ID) })
	lines := linesTo(w)
	defer lines.end()
	for i := range accounts {
		a := &accounts[i]
		if !lines.write(listedAccount{
			a.ID, a.Email.String(), a.CreatedAt, a.ActiveKeys, a.Suspended, m.limits(a.Allowance), a.SpentToday,
		}) {
			return
		}
	}
}

func (m *management) showAccount(r *http.Request) (any, error) {
	id, err := m.account(r)
	if err != nil {
		return nil, err
	}
	return m.describe(id)
}

// describe is all that the operator may know of an account.
func (m *management) describe(id uint64) (any, error) {
	record, verdict, err := m.node.ShowAccount(id)
	if err != nil {
		return nil, err
	}
	shown := shownAccount{
		ID: record.ID, Email: record.Email.String(), CreatedAt: record.CreatedAt, SuspendedAt: record.SuspendedAt, Reason: record.Reason,
		Limits: m.limits(record.Allowance), Day: windowOf(verdict.Day), Minute: windowOf(verdict.Minute), Keys: []shownKey{},
	}
	for i := range record.Keys {
		key := &record.Keys[i]
		shown.Keys = append(shown.Keys, shownKey{key.ID, key.Name, key.Hint, key.CreatedAt, key.RevokedAt, key.LastUsed})
	}
	return shown, nil
}

func (m *management) describeTransition() shownTransition {
	t := m.node.Transition()
	state := keysOptional
	switch now := m.clock(); {
	case t.Required(now):
		state = keysRequired
	case t.Pending(now):
		state = keysAnnounced
	}
	return shownTransition{state, t.RequiredAt, t.AnnouncedAt, t.By, m.mail}
}
