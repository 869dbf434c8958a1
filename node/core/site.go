package core

import (
	"cmp"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/actors"
	engineaccount "github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/httpapi/contract"
	"github.com/tasard/tasard/httpapi/data"
	"github.com/tasard/tasard/httpapi/pages"
	"github.com/tasard/tasard/httpapi/pages/account"
	"github.com/tasard/tasard/httpapi/pages/docs"
)

// site serves everything except the API: the documents of package contract, the files of package data, and the pages.
type site struct {
	parts func() (mux *http.ServeMux, notFound http.Handler)
}

// newSite returns the site. It usually creates the mux at once. In tests, where HTTP.Harness is set, the first request
// creates the mux, so that tests start fast.
func newSite(c *Config, system *actors.System) *site {
	s := &site{sync.OnceValues(func() (*http.ServeMux, http.Handler) { return newMux(c, system) })}
	if c.HTTP.Harness == nil {
		s.parts()
	}
	return s
}

// newMux returns the mux of the site. No pattern ends with a slash: the mux would redirect other paths to it, but paths
// must match exactly.
func newMux(c *Config, system *actors.System) (*http.ServeMux, http.Handler) {
	mux := http.NewServeMux()
	public := pages.New(pages.Config{
		Service: system, Catalogue: c.Actors.Catalogue, Clock: c.Actors.Clock, PublicURL: c.PublicURL, Logger: c.Actors.Logger, Demo: c.Demo,
		Contact: c.Contact, Secure: c.HTTP.Certificate != nil, Collection: c.Collection,
	})
	public.Register(mux)
	limits := docs.Limits{
		On:  system.LimitsEnforced(),
		Day: cmp.Or(c.Actors.QuotaPolicy.DefaultQuota.Day, engineaccount.DayLimitDefault), Minute: cmp.Or(c.Actors.QuotaPolicy.DefaultQuota.Minute, engineaccount.MinuteLimitDefault),
	}
	keysRequired := func() time.Time { return system.KeyPolicy().RequiredAt }
	contract.Register(mux, contract.Config{
		PublicURL: c.PublicURL, Limits: contract.Limits(limits), KeysRequired: keysRequired, Clock: c.Actors.Clock, Admit: public.Frame().Admit,
	})
	data.Register(mux, data.Config{
		Service: system, Catalogue: c.Actors.Catalogue, Clock: c.Actors.Clock, PublicURL: c.PublicURL, Logger: c.Actors.Logger,
		Admit: public.Frame().Admit,
	})
	account.New(account.Config{
		Frame: public.Frame(), Accounts: system, Access: system, Random: c.Random, Logger: c.Actors.Logger,
		MailOff: c.Mail != admin.MailSMTP && c.Mail != admin.MailLog, MailPrinted: c.Mail == admin.MailLog,
	}).Register(mux)
	docs.New(docs.Config{
		Frame: public.Frame(), Limits: limits, KeysRequired: keysRequired,
	}).Register(mux)
	return mux, public.Frame().NotFoundHandler()
}

// ServeHTTP implements http.Handler. Every response links to the documents of package contract.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	contract.AddLinks(w.Header())
	mux, notFound := s.parts()
	if s.Has(r.URL.EscapedPath(), "") {
		mux.ServeHTTP(w, r)
		return
	}
	notFound.ServeHTTP(w, r)
}

// Has implements httpapi.Site: it reports whether the site answers a path. For browsers, which accept HTML, it answers
// every path with a page.
func (s *site) Has(target, accept string) bool {
	if strings.Contains(accept, "text/html") {
		return true
	}
	location, err := url.ParseRequestURI(target)
	if err != nil || location.RawPath != "" || path.Clean(location.Path) != location.Path { // RawPath: /%61ccount is not /account
		return false
	}
	mux, _ := s.parts()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if _, pattern := mux.Handler(&http.Request{Method: method, URL: location}); pattern != "" {
			return true
		}
	}
	return false
}
