package account

import (
	"embed"
	"io"
	"log/slog"
	"net/http"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/pages"
)

//go:embed files
var embedded embed.FS

// AccessPolicy reports whether limits are enforced and when API keys are required. account.Admitter implements it.
type AccessPolicy interface {
	LimitsEnforced() bool
	KeyPolicy() account.KeyPolicy
}

// Config configures Pages. Frame, Accounts, Access and Random are required.
type Config struct {
	Frame    *pages.Frame
	Accounts account.Service
	Access   AccessPolicy
	Random   io.Reader    // cryptographically secure
	Logger   *slog.Logger // nil means no log

	MailOff     bool // the node sends no login codes, so the page says that sign-in is impossible
	MailPrinted bool // the node prints login codes to its terminal, for development
}

// Pages serves the account pages. It is safe for concurrent use.
type Pages struct {
	config  Config
	paths   []string                    // paths of the cookies, one for each language
	origins *http.CrossOriginProtection // rejects forms of other sites, in addition to SameSite cookies
	texts   *pages.Texts
}

// Names of assets, the static files that pages load.
const (
	styleAsset  = "account.css"
	scriptAsset = "account.js"
	copyAsset   = "copy.js" // an asset of pages.Frame
)

const rootPage = "/account"

// New creates the pages and adds their assets to the Frame. It panics if an embedded file or the public URL is
// invalid.
func New(config Config) *Pages {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	origins := http.NewCrossOriginProtection()
	if publicURL := config.Frame.PublicURL(); publicURL != "" {
		if err := origins.AddTrustedOrigin(publicURL); err != nil {
			panic("account: read the public address of the service: " + err.Error())
		}
	}
	files := pages.Folder(embedded, "files")
	config.Frame.AddAssets(files, styleAsset, scriptAsset)
	p := &Pages{
		config: config, origins: origins, texts: pages.ReadTexts(files),
	}
	for _, language := range pages.Languages() {
		p.paths = append(p.paths, language.Path(rootPage))
	}
	return p
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
