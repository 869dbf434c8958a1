package admin

import (
	"net/http"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

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
