package core

import (
	"net/http"
	"net/url"
	"path"
	"sync"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/httpapi/contract"
	"github.com/tasard/tasard/httpapi/pages"
	"github.com/tasard/tasard/httpapi/pages/account"
	"github.com/tasard/tasard/httpapi/pages/docs"
)

// site is everything that is served beside the operations: the contract as documents, pages for people.
type site struct {
	mux func() *http.ServeMux // it is put together when somebody first asks
}

// newSite puts the site together. Each part registers what it serves, with patterns that don't end with a slash: here
// paths match exactly (Q8), and the mux would send callers on.
func newSite(c *Config, system *actors.System) *site {
	s := &site{sync.OnceValue(func() *http.ServeMux { return newMux(c, system) })}
	if c.HTTP.Harness == nil {
		s.mux() // no caller waits for it
	}
	return s
}

func newMux(c *Config, system *actors.System) *http.ServeMux {
	mux := http.NewServeMux()
	public := pages.New(pages.Config{
		Service: system, Catalogue: c.Actors.Catalogue, Clock: c.Actors.Clock, PublicURL: c.PublicURL, Logger: c.Actors.Logger, Demo: c.Demo,
	})
	public.Register(mux)
	contract.New(contract.Config{PublicURL: c.PublicURL}).Register(mux)
	secure := c.HTTP.Certificate != nil
	account.New(account.Config{
		Frame: public.Frame(), Accounts: system, Access: system, Mail: pagesMail(c.Mail), Clock: c.Actors.Clock, Random: c.Random,
		PublicURL: c.PublicURL, Secure: secure, Logger: c.Actors.Logger,
	}).Register(mux)
	docs.New(docs.Config{
		Frame: public.Frame(), PublicURL: c.PublicURL, Secure: secure,
		Limits:       docs.Limits{On: system.LimitsEnforced(), Day: c.Actors.Terms.DefaultQuota.Day, Minute: c.Actors.Terms.DefaultQuota.Minute},
		KeysRequired: func() time.Time { return system.KeyPolicy().RequiredAt },
	}).Register(mux)
	return mux
}

// pagesMail is the way of letters as the account's pages call it.
func pagesMail(mail string) account.Mail {
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
	contract.AddLinks(w.Header())
	s.mux().ServeHTTP(w, r)
}

// Has is httpapi.Site.
func (s *site) Has(target string) bool {
	at, err := url.ParseRequestURI(target)
	if err != nil || path.Clean(at.Path) != at.Path {
		return false
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if _, pattern := s.mux().Handler(&http.Request{Method: method, URL: at}); pattern != "" {
			return true
		}
	}
	return false
}
