package node

import (
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/httpapi/contract"
	"github.com/tasard/tasard/httpapi/pages"
	"github.com/tasard/tasard/httpapi/pages/account"
	"github.com/tasard/tasard/httpapi/pages/docs"
)

// site is everything that is served beside the operations: the contract as documents, pages for people.
type site struct{ mux *http.ServeMux }

// newSite puts the site together. Each part registers what it serves, with patterns that don't end with a slash: here
// paths match exactly (Q8), and the mux would send callers on.
func (c *Config) newSite(system *actors.System, reference Reference) *site {
	s := &site{http.NewServeMux()}
	public := pages.New(pages.Config{
		Service: system, Catalogue: reference.Catalogue, Clock: c.Clock, PublicURL: c.HTTP.PublicURL, Logger: c.Logger, Demo: c.HTTP.Demo, Seed: c.seed(),
	})
	public.Register(s.mux)
	contract.New(contract.Config{PublicURL: c.HTTP.PublicURL}).Register(s.mux)
	secure := c.HTTP.TLS.Certificate != ""
	account.New(account.Config{
		Frame: public.Frame(), Accounts: system, Gate: system, Mail: lettersOf(c.Mail.way()), Clock: c.Clock, Random: c.Random,
		PublicURL: c.HTTP.PublicURL, Secure: secure, Logger: c.Logger,
	}).Register(s.mux)
	docs.New(docs.Config{
		Frame: public.Frame(), PublicURL: c.HTTP.PublicURL, Secure: secure,
		Limits:       docs.Limits{On: system.Enforced(), Day: c.Accounts.Terms.Allowance.Day, Minute: c.Accounts.Terms.Allowance.Minute},
		KeysRequired: func() time.Time { return system.Transition().RequiredAt },
	}).Register(s.mux)
	return s
}

// lettersOf is the way of letters as the account's pages call it.
func lettersOf(mail string) account.Mail {
	switch mail {
	case admin.MailSMTP:
		return account.MailSent
	case admin.MailLog:
		return account.MailPrinted
	}
	return account.MailOff
}

// ServeHTTP is http.Handler. Every answer leads to the contract.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	contract.Announce(w.Header())
	s.mux.ServeHTTP(w, r)
}

// Has is httpapi.Site.
func (s *site) Has(target string) bool {
	at, err := url.ParseRequestURI(target)
	if err != nil || path.Clean(at.Path) != at.Path {
		return false
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if _, pattern := s.mux.Handler(&http.Request{Method: method, URL: at}); pattern != "" {
			return true
		}
	}
	return false
}
