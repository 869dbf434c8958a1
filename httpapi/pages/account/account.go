package account

import (
	"embed"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/pages"
)

//go:embed files
var embedded embed.FS

// Mail is how login codes reach people.
type Mail uint8

// The ways of letters.
const (
	// MailOff is a node that sends none: nobody can sign in, and the page says so.
	MailOff Mail = iota
	// MailSent is by a mail server.
	MailSent
	// MailPrinted is where the node runs, for development.
	MailPrinted
)

// AccessPolicy is what is told of limits and of the end of anonymous access. account.AccessPolicy is one.
type AccessPolicy interface {
	LimitsEnforced() bool
	KeyPolicy() account.KeyPolicy
}

// Config says what the pages are made of. Frame, Accounts, AccessPolicy, Clock and Random are required.
type Config struct {
	Frame    *pages.Frame
	Accounts account.Service
	Access   AccessPolicy
	Mail     Mail
	Clock    func() time.Time
	Random   io.Reader // a source of secrets
	// PublicURL is the address under which people reach the service. Empty: what the browser asked for stands in the lines to be copied.
	PublicURL string
	Secure    bool         // the service is reached by https alone: cookies never travel without it. So it is when PublicURL says https
	Logger    *slog.Logger // nil: nothing is logged
}

// Pages are the account's pages. Safe for concurrent use.
type Pages struct {
	config     Config
	forms      *formTokens
	paths      []string // that cookies are for: of each language
	publicHost string
	texts      *pages.Texts
}

// Names of assets.
const (
	styleAsset  = "account.css"
	scriptAsset = "account.js"
	copyAsset   = "copy.js" // the frame's
)

const rootPage = "/account"

// New makes the pages and adds their assets to the frame. It panics when an embedded file is damaged, when PublicURL is none, or when
// there is no chance to be had: crypto/rand ends the program itself then.
func New(config Config) *Pages {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	config.PublicURL = strings.TrimRight(config.PublicURL, "/")
	public, err := url.Parse(config.PublicURL)
	must("read the public address of the service", err)
	var key [32]byte
	_, err = io.ReadFull(config.Random, key[:])
	must("draw the key of forms", err)
	files, err := fs.Sub(embedded, "files")
	must("read the embedded files", err)
	config.Frame.AddAssets(files, styleAsset, scriptAsset)
	config.Secure = config.Secure || public.Scheme == "https"
	p := &Pages{
		config: config, forms: newFormTokens(key, config.Clock), publicHost: public.Host, texts: pages.ReadTexts(files),
	}
	for _, language := range pages.Languages() {
		p.paths = append(p.paths, language.Path(rootPage))
	}
	return p
}

func must(do string, err error) {
	if err != nil {
		panic("account: " + do + ": " + err.Error())
	}
}

// Register adds the pages to a mux.
func (p *Pages) Register(mux *http.ServeMux) {
	frame := p.config.Frame
	frame.Handle(mux, http.MethodGet, rootPage, p.withContext(p.show))
	frame.Handle(mux, http.MethodGet, rootPage+"/code", p.withContext(p.showCode))
	for _, form := range []struct {
		path   string
		handle func(*pageContext)
	}{
		{"/codes", p.requestCode},
		{"/sessions", p.openSession},
		{"/keys", p.createKey},
		{"/keys/{id}/revoke", p.revokeKey},
		{"/signout", p.signOut},
	} {
		frame.Handle(mux, http.MethodPost, rootPage+form.path, p.withForm(form.handle))
		frame.Handle(mux, http.MethodGet, rootPage+form.path, p.withContext(func(v *pageContext) { v.redirect(rootPage) }))
	}
}
