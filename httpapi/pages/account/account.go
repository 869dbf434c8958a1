package account

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/fields"
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

const formBytesMax = 4 << 10

// pageContext is a request with its cookies and its form.
type pageContext struct {
	p *Pages
	w http.ResponseWriter
	r *pages.Request
	l *pages.Localizer

	login      loginState     // content of the login cookie
	hasLogin   bool           // the request has a valid login cookie
	session    account.Secret // session token from the session cookie
	hasSession bool           // the request has a session cookie, perhaps of an expired session
	formValues url.Values     // values from the request's body, without the URL query
}

// withContext returns a handler that calls handle with the cookies of the request.
func (p *Pages) withContext(handle func(*pageContext)) pages.Handler {
	return func(w http.ResponseWriter, r *pages.Request) {
		v := &pageContext{p: p, w: w, r: r, l: p.texts.In(r)}
		v.login, v.hasLogin = parseLoginState(p.cookie(r.Request, loginCookie))
		v.session, v.hasSession = p.session(r.Request)
		w.Header().Set("Cache-Control", "no-store")
		handle(v)
	}
}

// withForm is withContext for forms. It rejects cross-origin requests and all content types except that of HTML forms,
// before it reads the body.
func (p *Pages) withForm(handle func(*pageContext)) pages.Handler {
	return p.withContext(func(v *pageContext) {
		mediaType, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
		if err != nil || mediaType != "application/x-www-form-urlencoded" || p.origins.Check(v.r.Request) != nil {
			p.config.Frame.BadRequest(v.w, v.r)
			return
		}
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, formBytesMax)
		if err := v.r.ParseForm(); err != nil {
			p.config.Frame.BadRequest(v.w, v.r)
			return
		}
		v.formValues = v.r.PostForm //nolint:forbidigo // the field of Request, not http.PostForm, which sends a request
		handle(v)
	})
}

// value returns a field of the form without spaces at both ends. Query parameters are ignored.
func (v *pageContext) value(name string) string { return strings.TrimSpace(v.formValues.Get(name)) }

// digits returns a field of the form without spaces and hyphens.
func (v *pageContext) digits(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '-' {
			return -1
		}
		return c
	}, v.value(name))
}

// requester returns the client for a code request or a login attempt.
func (v *pageContext) requester() account.Requester {
	from := account.Requester{Address: v.r.Address}
	if v.hasLogin {
		from.Browser = sha256.Sum256([]byte(v.login.browserID))
	}
	return from
}

// identifyBrowser gives a browser without a login cookie a random id; setLogin stores it in the cookie.
func (v *pageContext) identifyBrowser() error {
	if v.hasLogin {
		return nil
	}
	var id [browserIDBytes]byte
	if _, err := io.ReadFull(v.p.config.Random, id[:]); err != nil {
		return fmt.Errorf("generate an id for a browser: %w", err)
	}
	v.login, v.hasLogin = loginState{browserID: hex.EncodeToString(id[:])}, true
	return nil
}

// setLogin sets the login cookie. email is the address for which a code was requested, or zero.
func (v *pageContext) setLogin(email account.Email, lifetime time.Duration) {
	v.setCookie(loginCookie, loginState{v.login.browserID, email}.encode(), lifetime)
}

// redirect redirects to another page in the language of the request. page is the path of the page in Spanish.
func (v *pageContext) redirect(page string) {
	v.w.Header().Set("Location", v.r.Language.Path(page))
	v.w.WriteHeader(http.StatusSeeOther)
}

func (v *pageContext) write(status int, title string, body Group) {
	v.p.config.Frame.Write(v.w, v.r, &pages.Document{
		Body: body, Title: v.l.Str(title), Status: status, Section: rootPage, NoIndex: true,
		Styles: []string{styleAsset}, Scripts: []string{copyAsset, scriptAsset},
	})
}

// log logs an operation without e-mail address, login code or key. It does not log errors caused by load or limits.
func (v *pageContext) log(status int, code engine.Code) {
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		return
	}
	v.p.config.Logger.LogAttrs(context.Background(), slog.LevelInfo, "account page",
		slog.String("requestId", v.r.ID), slog.String("operation", v.r.Pattern), slog.Int("status", status),
		slog.String("code", string(code)), slog.String("network", fields.LoggedNetwork(v.r.Address)))
}

const (
	sessionCookie = "tasard_session"
	loginCookie   = "tasard_login"
	// securePrefix begins the name of a cookie that browsers accept only over https.
	securePrefix = "__Secure-"

	browserIDBytes = 16
	// loginLifetime is the lifetime of the login cookie after a code is requested. When the cookie expires, the code
	// has expired and another code can be requested.
	loginLifetime = account.CodeLifetime + account.CodeResendAfter
	// knownBrowserLifetime is the lifetime of the login cookie after a login. With the cookie, the browser has login
	// limits of its own, which other clients cannot use up; see account.Requester.
	knownBrowserLifetime = 365 * 24 * time.Hour
)

// loginState is the content of the login cookie.
type loginState struct {
	browserID string        // random, hexadecimal; login codes are bound to it
	email     account.Email // address for which a login code was requested, or zero
}

// encode returns the id of the browser, a dot, and the e-mail address in base64url.
func (l loginState) encode() string {
	return l.browserID + "." + base64.RawURLEncoding.EncodeToString([]byte(l.email.String()))
}

// parseLoginState is the inverse of encode.
func parseLoginState(value string) (loginState, bool) {
	encodedID, encodedEmail, ok := strings.Cut(value, ".")
	id, err := hex.DecodeString(encodedID)
	if !ok || err != nil || len(id) != browserIDBytes {
		return loginState{}, false
	}
	address, err := base64.RawURLEncoding.DecodeString(encodedEmail)
	if err != nil {
		return loginState{}, false
	}
	if len(address) == 0 {
		return loginState{browserID: encodedID}, true
	}
	email, err := account.ParseEmail(string(address))
	return loginState{encodedID, email}, err == nil
}

// cookieName returns the name of a cookie, with securePrefix for an https request.
func (p *Pages) cookieName(r *http.Request, name string) string {
	if p.config.Frame.Secure(r) {
		return securePrefix + name
	}
	return name
}

// setCookie sets a cookie for the account pages' paths in all languages. A zero lifetime deletes the cookie.
func (v *pageContext) setCookie(name, value string, lifetime time.Duration) {
	p := v.p
	age := int(lifetime / time.Second)
	if age <= 0 {
		value, age = "", -1
	}
	for _, path := range p.paths {
		//nolint:gosec // G124: Secure is off only for a site with plain HTTP, where a browser would drop a secure cookie
		http.SetCookie(v.w, &http.Cookie{
			Name: p.cookieName(v.r.Request, name), Value: value, Path: path, MaxAge: age,
			HttpOnly: true, Secure: p.config.Frame.Secure(v.r.Request), SameSite: http.SameSiteStrictMode,
		})
	}
}

// cookie returns the value of a cookie. If two cookies have the name, it returns "", because another subdomain may have
// set one of them.
func (p *Pages) cookie(r *http.Request, name string) string {
	cookies := r.CookiesNamed(p.cookieName(r, name))
	if len(cookies) != 1 {
		return ""
	}
	return cookies[0].Value
}

// session returns the token in the session cookie, and whether there is one. The session may have expired.
func (p *Pages) session(r *http.Request) (account.Secret, bool) {
	value := p.cookie(r, sessionCookie)
	return account.SecretOf(value), strings.HasPrefix(value, account.SessionPrefix)
}

// formView is what the user entered in the forms of a page, and the result. Messages are keys of pages.Texts.
type formView struct {
	email, name string
	fieldErrs   map[string]string // error messages by name of the field
	formErr     *formError        // may be nil
	note        string            // success message, or ""
}

// formError is an error about a whole form, not one of its fields.
type formError struct {
	Key    string // the text of the error has the key "fault." + Key
	Status int
	Wait   time.Duration // how long the user must wait; 0 is not shown
}

// secondsMax is the maximum wait shown in seconds.
const secondsMax = 120 * time.Second

// formErrorOf converts an error to a formError. For an internal error it returns nil.
func formErrorOf(err error) *formError {
	status, wait := pages.StatusOf(err)
	if status == http.StatusInternalServerError {
		return nil
	}
	return &formError{string(engine.CodeOf(err)), status, wait}
}

// statusOf returns the HTTP status of a page: 422 after an error in a field, otherwise the status of the form error, or
// 200. It also sets Retry-After if the user must wait.
func (v *pageContext) statusOf(view formView) int {
	switch f := view.formErr; {
	case len(view.fieldErrs) > 0:
		return http.StatusUnprocessableEntity
	case f == nil:
		return http.StatusOK
	case f.Wait > 0:
		v.w.Header().Set("Retry-After", fields.RetryAfter(f.Wait))
	}
	return view.formErr.Status
}

// notices returns boxes for the form's success message and error, if any.
func (v *pageContext) notices(view formView) Node {
	var boxes Group
	if view.note != "" {
		boxes = append(boxes, Div(Class("notice good"), Role("status"), P(v.l.T(view.note))))
	}
	if f := view.formErr; f != nil {
		key, unit := "wait.seconds", time.Second
		if f.Wait > secondsMax {
			key, unit = "wait.minutes", time.Minute
		}
		wait := int((f.Wait + unit - 1) / unit) // rounded up
		boxes = append(boxes, Div(Class("notice bad"), Role("alert"), P(v.l.T("fault."+f.Key), If(f.Wait > 0, Text(" "+v.l.Count(key, wait))))))
	}
	return boxes
}

// form returns a form. path is relative to rootPage.
func (v *pageContext) form(path, class string, children ...Node) Node {
	return Form(If(class != "", Class(class)), Method("post"), v.l.Action(rootPage+path), Group(children))
}

// field returns an input field with label, error message and help text (may be ""). label is the key of the label.
func (v *pageContext) field(view formView, name, label, help string, attributes ...Node) Node {
	described, errKey := "", view.fieldErrs[name]
	if help != "" {
		described = name + "-help"
	}
	if errKey != "" {
		described = strings.TrimSpace(described + " " + name + "-fault")
	}
	return Div(Class("field"), Label(For(name), v.l.T(label)),
		Input(ID(name), Name(name), Group(attributes), If(described != "", Aria("describedby", described)), If(errKey != "", Aria("invalid", "true"))),
		If(errKey != "", P(Class("problem"), ID(name+"-fault"), Role("alert"), v.l.T(errKey))),
		If(help != "", P(Class("fine"), ID(name+"-help"), Text(help))))
}

func (v *pageContext) emailField(view formView, help string) Node {
	return v.field(view, "email", "welcome.email", help, Type("email"), Attr("inputmode", "email"), AutoComplete("email"), MaxLength("254"), Required(), Value(view.email))
}

func submit(class string, children ...Node) Node {
	return Button(Class(class), Type("submit"), Group(children))
}

// signInPage sends the page with the form for an e-mail address.
func (v *pageContext) signInPage(view formView) {
	l := v.l
	form := Group{
		v.form("/codes", "card stack", v.emailField(view, l.Str("welcome.help")), submit("button", l.T("welcome.send"))),
		v.mailPrintedNotice(),
	}
	if v.p.config.MailOff {
		form = Group{Div(Class("notice bad"), P(l.T("welcome.off")))}
	}
	v.write(v.statusOf(view), "nav.account", Group{
		H1(l.T("welcome.title")), P(Class("lead"), l.T("welcome.lead")), v.notices(view), v.keysRequiredNotice(), form,
		H2(l.T("welcome.how")), Ol(Class("prose"), Li(l.T("welcome.how.1")),
			Li(l.T("welcome.how.2", int(account.CodeLifetime.Minutes()))), Li(l.T("welcome.how.3", account.KeysActiveMax))),
		P(Class("explain"), l.T("welcome.privacy")),
		P(A(l.Href("/docs"), l.T("welcome.docs"))),
	})
}

// keysRequiredNotice shows the date from which API keys are required. It returns nil without an announced date.
func (v *pageContext) keysRequiredNotice() Node {
	required := v.p.config.Access.KeyPolicy().RequiredAt
	if required.IsZero() {
		return nil
	}
	return Div(Class("notice"), P(v.l.T("transition.required"), Text(" "), v.l.Time(required), Text(". "), v.l.T("transition.after")))
}

// mailPrintedNotice explains where login codes are printed, in development.
func (v *pageContext) mailPrintedNotice() Node {
	return If(v.p.config.MailPrinted, Div(Class("notice"), P(v.l.T("printed"))))
}

func (p *Pages) show(v *pageContext) {
	if v.hasSession {
		v.homePage(formView{note: noteOf(v.r)})
		return
	}
	v.signInPage(formView{note: noteOf(v.r)})
}

// noteOf returns the key of the success message for the query parameter done, which a redirect has set. It accepts only
// known values, so that a link can't put other texts on the page.
func noteOf(r *pages.Request) string {
	switch done := r.URL.Query().Get("done"); done {
	case "revoked", "out":
		return "note." + done
	}
	return ""
}

// showCode sends the page with the form for a login code. Every step of signing in redirects to it, and each has set
// the login cookie: without the cookie, the page explains that it is needed.
func (p *Pages) showCode(v *pageContext) {
	switch {
	case v.hasSession, v.hasLogin && v.login.email.IsZero():
		v.redirect(rootPage)
	case !v.hasLogin:
		v.signInPage(formView{formErr: &formError{Key: "no_cookies", Status: http.StatusOK}})
	default:
		v.codePage(formView{email: v.login.email.String()})
	}
}

func (v *pageContext) codePage(view formView) {
	l := v.l
	v.write(v.statusOf(view), "code.title", Group{
		H1(l.T("code.title")), P(Class("lead"), l.T("code.lead")), v.notices(view),
		v.form("/sessions", "card stack", v.emailField(view, ""),
			v.field(view, "code", "code.code", l.Str("code.help", int(account.CodeLifetime.Minutes()), account.CodeTriesMax),
				Class("digits"), Type("text"), Attr("inputmode", "numeric"), AutoComplete("one-time-code"), MaxLength("16"), Attr("size", "10"), Required(), AutoFocus()),
			submit("button", l.T("code.enter"))),
		v.mailPrintedNotice(),
		H2(l.T("code.none")), P(l.T("code.again")),
		v.form("/codes", "inline", Input(Type("hidden"), Name("email"), Value(view.email)),
			submit("button plain", l.T("code.resend")), Text(" "), A(l.Href(rootPage), l.T("code.other"))),
	})
}

// requestCode requests a login code. The response does not reveal whether the e-mail address has an account.
func (p *Pages) requestCode(v *pageContext) {
	emailText := v.value("email")
	email, err := account.ParseEmail(emailText)
	if err != nil {
		v.signInPage(formView{email: emailText, fieldErrs: map[string]string{"email": "fault.email"}})
		return
	}
	if err = v.identifyBrowser(); err == nil {
		err = p.config.Accounts.RequestCode(email, v.requester())
	}
	if err == nil || engine.CodeOf(err) == engine.CodeRequestedTooSoon {
		v.setLogin(email, loginLifetime)
	}
	switch f := formErrorOf(err); {
	case err == nil:
		v.log(http.StatusSeeOther, "")
		v.redirect(rootPage + "/code")
	case f == nil:
		p.config.Frame.Fail(v.w, v.r, err)
	case engine.CodeOf(err) == engine.CodeRequestedTooSoon: // the user can still enter the previous code
		v.codePage(formView{email: email.String(), formErr: f})
	default:
		v.log(f.Status, engine.CodeOf(err))
		v.signInPage(formView{email: emailText, formErr: f})
	}
}

func (p *Pages) openSession(v *pageContext) {
	view := formView{email: v.value("email"), fieldErrs: map[string]string{}}
	code := v.digits("code")
	email, err := account.ParseEmail(view.email)
	if err != nil {
		view.fieldErrs["email"] = "fault.email"
	}
	if !account.ValidCode(code) {
		view.fieldErrs["code"] = "fault.digits"
	}
	if len(view.fieldErrs) > 0 {
		v.codePage(view)
		return
	}
	if err := v.identifyBrowser(); err != nil {
		p.config.Frame.Fail(v.w, v.r, err)
		return
	}
	token, expires, err := p.config.Accounts.OpenSession(email, code, v.requester())
	f := formErrorOf(err)
	switch {
	case err == nil:
		v.setCookie(sessionCookie, token.Reveal(), expires.Sub(v.r.Now))
		v.setLogin(account.Email{}, knownBrowserLifetime)
		v.log(http.StatusSeeOther, "")
		v.redirect(rootPage + "/code")
		return
	case f == nil:
		p.config.Frame.Fail(v.w, v.r, err)
		return
	case engine.CodeOf(err) == engine.CodeInvalidCode:
		view.fieldErrs["code"] = "fault.invalid_code"
	default:
		view.formErr = f
	}
	v.log(f.Status, engine.CodeOf(err))
	v.codePage(view)
}

// signOut closes the session. It deletes the cookie even after a failure, because the session expires within 15
// minutes.
func (p *Pages) signOut(v *pageContext) {
	if !v.hasSession {
		v.redirect(rootPage)
		return
	}
	err := p.config.Accounts.CloseSession(v.session.Digest())
	if err != nil && engine.CodeOf(err) != engine.CodeInvalidSession {
		p.config.Logger.Warn("a session was not closed; it ends by itself", "requestId", v.r.ID, "cause", err)
	}
	v.log(http.StatusSeeOther, engine.CodeOf(err))
	v.setCookie(sessionCookie, "", 0)
	v.redirect(rootPage + "?done=out")
}
