package core

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	engineaccount "github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/httpapi/contract"
	"github.com/tasard/tasard/httpapi/data"
	"github.com/tasard/tasard/httpapi/pages"
	"github.com/tasard/tasard/httpapi/pages/account"
	"github.com/tasard/tasard/httpapi/pages/docs"
)

// Config configures a Core. Clock, Random and Logger of Actors are used in the whole Core.
type Config struct {
	Actors actors.Config
	Seed   func() uint64 // returns the seed for the request ids, which are unique but not secret
	Random io.Reader     // for secrets of the pages; nil means Actors.Random
	Mail   string        // how login codes are sent: admin.MailSMTP, admin.MailLog or admin.MailOff

	HTTP      httpapi.Config // of the HTTP server; Open sets the fields that depend on other fields of Config
	PublicURL string         // public address of the pages; "" means unknown
	Contact   string         // e-mail address or URL of the operator, for the pages; "" means none
	Demo      bool           // pages say that the rates are simulated
	AccessLog io.Writer      // gets a line of JSON for each response; may be nil

	// These functions return the state of parts outside the core, such as mail. Each may be nil.
	Conditions func() []engine.Condition
	Collection func() (next time.Time, failed []string) // for the pages, see pages.Config
}

// Core is a system (actors with their log) and its HTTP server. The server accepts connections only after Server.Serve
// or Server.ServeConn.
type Core struct {
	System     *actors.System
	Server     *httpapi.Server
	conditions func() []engine.Condition // Config.Conditions
}

// Open starts the actors and creates the server. It does not wait until the log has been read. The caller must stop the
// server and then call System.Close.
func Open(c Config) (*Core, error) {
	if c.Actors.Logger == nil {
		c.Actors.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Random == nil {
		c.Random = c.Actors.Random
	}
	system, err := actors.Open(c.Actors)
	if err != nil {
		return nil, err
	}
	n := &Core{System: system, conditions: c.Conditions}
	httpConfig := c.httpConfig(system)
	httpConfig.Health, httpConfig.Site = n, newSite(&c, system)
	n.Server = httpapi.New(httpConfig)
	return n, nil
}

// httpConfig returns Config.HTTP, completed from the system and from other fields of Config.
func (c *Config) httpConfig(system *actors.System) httpapi.Config {
	config := c.HTTP
	config.Service, config.Admitter, config.Accounts = system, system.Admitter(), system
	config.Catalogue, config.Clock, config.Logger = c.Actors.Catalogue, c.Actors.Clock, c.Actors.Logger
	config.RequestID, config.AccessLog = httpapi.RequestIDs(c.Seed()), accessLog(c.AccessLog)
	config.KeysLink = "/docs"
	return config
}

// Conditions implements engine.Health.
func (n *Core) Conditions() []engine.Condition {
	conditions := n.System.Conditions()
	if n.conditions != nil {
		conditions = append(conditions, n.conditions()...)
	}
	return conditions
}

// accessLog returns a function that logs responses as JSON, or nil if out is nil. The function runs within the request,
// so out must not block.
func accessLog(out io.Writer) func(httpapi.AccessRecord) {
	if out == nil {
		return nil
	}
	handler := slog.NewJSONHandler(out, nil)
	return func(a httpapi.AccessRecord) {
		record := slog.NewRecord(a.At.UTC(), slog.LevelInfo, "access", 0)
		record.AddAttrs(
			slog.String("requestId", a.RequestID), slog.String("method", a.Method), slog.String("route", a.Route), slog.Int("status", a.Status),
			slog.Int64("micros", a.Duration.Microseconds()), slog.Int("bytes", a.Bytes), slog.Bool("keyed", a.Keyed), slog.String("network", a.Network),
		)
		_ = handler.Handle(context.Background(), record) // the error can't be reported: writing the log has failed
	}
}

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
	quota := c.Actors.QuotaPolicy.DefaultQuota
	limits := docs.Limits{
		On: system.LimitsEnforced(), Day: cmp.Or(quota.Day, engineaccount.DayLimitDefault), Minute: cmp.Or(quota.Minute, engineaccount.MinuteLimitDefault),
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
