package cmd

import (
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/tasard/tasard/httpapi/contract"
	"github.com/tasard/tasard/httpapi/pages"
	"github.com/tasard/tasard/httpapi/pages/account"
	"github.com/tasard/tasard/httpapi/pages/docs"
)

// site is everything that is served beside the operations: the contract as documents, pages for people.
type site struct{ mux *http.ServeMux }

// newSite puts the site together. Each part registers what it serves, with patterns that don't end with a slash: here
// paths match exactly (Q8), and the mux would send callers on.
func (p *process) newSite(n *node, o frontOptions, log *slog.Logger) *site {
	s := &site{http.NewServeMux()}
	public := pages.New(pages.Config{
		Service: n.system, Catalogue: n.catalogue, Clock: p.clock, PublicURL: o.publicURL, Logger: log, Demo: o.demo, Seed: p.seed(),
	})
	public.Register(s.mux)
	contract.New(contract.Config{PublicURL: o.publicURL}).Register(s.mux)
	secure := o.tls.cert != ""
	account.New(account.Config{
		Frame: public.Frame(), Accounts: n.system, Gate: n.system, Mail: lettersOf(o.mail), Clock: p.clock, Random: p.random,
		PublicURL: o.publicURL, Secure: secure, Logger: log,
	}).Register(s.mux)
	docs.New(docs.Config{
		Frame: public.Frame(), PublicURL: o.publicURL, Secure: secure,
		Limits:       docs.Limits{On: n.system.Enforced(), Day: o.allowance.Day, Minute: o.allowance.Minute},
		KeysRequired: func() time.Time { return n.system.Transition().RequiredAt },
	}).Register(s.mux)
	return s
}

// lettersOf is the way of letters as the account's pages call it.
func lettersOf(mail string) account.Mail {
	switch mail {
	case mailSMTP:
		return account.MailSent
	case mailLog:
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
