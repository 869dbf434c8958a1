package admin

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Maximum quotas of an account.
const (
	QuotaDayMax    = 100_000_000
	QuotaMinuteMax = 60_000 // low, because the node stores the time of each request in the last minute
)

// Bodies of requests about accounts.
type (
	// Suspension suspends an account.
	Suspension struct {
		Reason string `json:"reason"`
		Author
	}
	// Author names the author of a change. Without a name, the log contains only the caller's operating-system user.
	Author struct {
		Name string `json:"by,omitempty"`
	}
	// LimitChange changes the quota of an account. nil keeps a limit, and 0 resets a limit to the node's default.
	LimitChange struct {
		Day    *int `json:"day,omitempty"`
		Minute *int `json:"minute,omitempty"`
		Author
	}
)

// Responses about accounts. Zero times are omitted.
type (
	// ListedAccount is an account in a list, with a masked e-mail address.
	ListedAccount struct {
		ID         uint64    `json:"id"`
		Email      string    `json:"email"`
		CreatedAt  time.Time `json:"createdAt"`
		ActiveKeys int       `json:"activeKeys"`
		Suspended  bool      `json:"suspended"`
		Limits     Limits    `json:"limits"`
		SpentToday int       `json:"spentToday"`
	}
	// Limits are the limits of an account. Own is false for the node's default limits.
	Limits struct {
		Day    int  `json:"day"`
		Minute int  `json:"minute"`
		Own    bool `json:"own"`
	}
	// Account describes an account.
	Account struct {
		ID          uint64    `json:"id"`
		Email       string    `json:"email"`
		CreatedAt   time.Time `json:"createdAt"`
		SuspendedAt time.Time `json:"suspendedAt,omitzero"`
		Reason      string    `json:"reason,omitempty"`
		Limits      Limits    `json:"limits"`
		// Day and Minute are the states of the two quota windows. Keys contain no secrets.
		Day    account.Window      `json:"day"`
		Minute account.Window      `json:"minute"`
		Keys   []account.KeyRecord `json:"keys"`
	}
	// Unlocked contains the masked e-mail address with which logins are possible again.
	Unlocked struct {
		Email string `json:"email"`
	}
)

func (s *Server) limits(own account.Quota) Limits {
	return Limits{cmp.Or(own.Day, s.config.DefaultQuota.Day), cmp.Or(own.Minute, s.config.DefaultQuota.Minute), own != account.Quota{}}
}

// author returns the author's name for the check in readBody.
func (a Author) author() string { return a.Name }

func (s *Server) listAccounts(*http.Request, NoBody) ([]ListedAccount, error) {
	accounts, err := s.config.Node.ListAccounts()
	list := make([]ListedAccount, len(accounts))
	for i := range accounts {
		a := &accounts[i]
		list[i] = ListedAccount{a.ID, a.Email.String(), a.CreatedAt, a.ActiveKeys, a.Suspended, s.limits(a.Quota), a.SpentToday}
	}
	return list, err
}

func (s *Server) showAccount(r *http.Request, _ NoBody) (Account, error) {
	id, err := s.account(r)
	if err != nil {
		return Account{}, err
	}
	return s.describe(id)
}

// account returns the number of the account in the path. The path contains the number or the e-mail address.
func (s *Server) account(r *http.Request) (uint64, error) {
	text := r.PathValue("account")
	if id, err := strconv.ParseUint(text, 10, 64); err == nil {
		return id, nil
	}
	email, err := account.ParseEmail(text)
	if err != nil {
		return 0, badRequest("%q is neither the number of an account nor an e-mail address", text)
	}
	accounts, err := s.config.Node.ListAccounts()
	if err != nil {
		return 0, err
	}
	for i := range accounts {
		if accounts[i].Email == email.ID() {
			return accounts[i].ID, nil
		}
	}
	return 0, &engine.Error{Code: engine.CodeNotFound, Message: "no account has this e-mail address"}
}

func (s *Server) describe(id uint64) (Account, error) {
	record, quota, err := s.config.Node.ShowAccount(id)
	if err != nil {
		return Account{}, err
	}
	return Account{
		ID: record.ID, Email: record.Email.String(), CreatedAt: record.CreatedAt, SuspendedAt: record.SuspendedAt, Reason: record.Reason,
		Limits: s.limits(record.Quota), Day: quota.Day, Minute: quota.Minute, Keys: append([]account.KeyRecord{}, record.Keys...),
	}, nil
}

// change calls do for the account in the path, logs the change, and returns the changed account.
func (s *Server) change(r *http.Request, operation string, author Author, do func(id uint64, by string) error) (Account, error) {
	id, err := s.account(r)
	if err != nil {
		return Account{}, err
	}
	by := authorName(r.Context(), author)
	if err := do(id, by); err != nil {
		return Account{}, err
	}
	s.config.Logger.Info("changed by an operator", "operation", operation, "account", id, "by", by)
	return s.describe(id)
}

func (s *Server) suspend(r *http.Request, body Suspension) (Account, error) {
	return s.change(r, "suspend", body.Author, func(id uint64, by string) error {
		if strings.TrimSpace(body.Reason) == "" {
			return badRequest("a suspension needs a reason")
		}
		if err := checkLine("the reason", body.Reason, ReasonMax); err != nil {
			return err
		}
		return s.config.Node.SuspendAccount(id, body.Reason, by)
	})
}

func (s *Server) restore(r *http.Request, body Author) (Account, error) {
	return s.change(r, "restore", body, s.config.Node.RestoreAccount)
}

// unlock allows logins with an e-mail address again, even if the address has no account yet.
func (s *Server) unlock(r *http.Request, body Author) (Unlocked, error) {
	email, err := account.ParseEmail(r.PathValue("account"))
	id := email.ID()
	if err != nil {
		number, err := s.account(r)
		if err != nil {
			return Unlocked{}, err
		}
		record, _, err := s.config.Node.ShowAccount(number)
		if err != nil {
			return Unlocked{}, err
		}
		id = record.Email
	}
	by := authorName(r.Context(), body)
	if err := s.config.Node.UnlockLogin(id, by); err != nil {
		return Unlocked{}, err
	}
	s.config.Logger.Info("changed by an operator", "operation", "unlock", "email", id.String(), "by", by)
	return Unlocked{Email: id.String()}, nil
}

func (s *Server) limit(r *http.Request, body LimitChange) (Account, error) {
	return s.change(r, "limit", body.Author, func(id uint64, by string) error {
		record, _, err := s.config.Node.ShowAccount(id)
		if err != nil {
			return err
		}
		quota := record.Quota
		for _, limit := range []struct {
			name     string
			newValue *int
			target   *int
			limitMax int
		}{{"day", body.Day, &quota.Day, QuotaDayMax}, {"minute", body.Minute, &quota.Minute, QuotaMinuteMax}} {
			switch {
			case limit.newValue == nil:
			case *limit.newValue < 0 || *limit.newValue > limit.limitMax:
				return badRequest("the limit of the %s must be from 1 to %d, or 0 for the node's", limit.name, limit.limitMax)
			default:
				*limit.target = *limit.newValue
			}
		}
		return s.config.Node.SetAccountQuota(id, quota, by)
	})
}

// Values of Config.Mail, the delivery of login codes.
const (
	MailSMTP = "smtp"
	MailLog  = "log" // printed to the output of the node, for development
	MailOff  = "off"
)

// UnsafeMail is the error message if API keys are to be required and Config.Mail is MailLog.
const UnsafeMail = "this node runs with --smtp-addr log, so every reader of its output can sign in as any user; " +
	"start it with a mail server, or without --smtp-addr"

// Values of KeyPolicy.State.
const (
	KeysOptional  = "optional"
	KeysAnnounced = "announced"
	KeysRequired  = "required"
)

type (
	// Announcement announces the time At from which API keys are required.
	Announcement struct {
		At time.Time `json:"at"`
		Author
	}
	// KeyPolicy tells whether requests need API keys. Mail is the delivery of login codes (Config.Mail).
	KeyPolicy struct {
		State string `json:"state"`
		account.KeyPolicy
		Mail string `json:"mail"`
	}
)

func (s *Server) showKeyPolicy(*http.Request, NoBody) (KeyPolicy, error) {
	policy := s.config.Node.KeyPolicy()
	state := KeysOptional
	switch now := s.config.Clock(); {
	case policy.Required(now):
		state = KeysRequired
	case policy.Pending(now):
		state = KeysAnnounced
	}
	return KeyPolicy{state, policy, s.config.Mail}, nil
}

func (s *Server) announce(r *http.Request, body Announcement) (KeyPolicy, error) {
	if s.config.Mail == MailLog {
		return KeyPolicy{}, &engine.Error{Code: CodeNotConfigured, Message: UnsafeMail}
	}
	by := authorName(r.Context(), body.Author)
	policy, err := s.config.Node.Announce(body.At, by)
	if err != nil {
		return KeyPolicy{}, err
	}
	s.config.Logger.Info("changed by an operator", "operation", "announce", "requiredAt", policy.RequiredAt, "by", by)
	return s.showKeyPolicy(r, NoBody{})
}

func (s *Server) withdraw(r *http.Request, body Author) (KeyPolicy, error) {
	by := authorName(r.Context(), body)
	if err := s.config.Node.WithdrawAnnouncement(by); err != nil {
		return KeyPolicy{}, err
	}
	s.config.Logger.Info("changed by an operator", "operation", "withdraw", "by", by)
	return s.showKeyPolicy(r, NoBody{})
}
