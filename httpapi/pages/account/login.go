package account

import (
	"net/http"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/pages"
)

// Purposes of forms.
const (
	purposeCode    = "code"
	purposeSession = "session"
	purposeKey     = "key"
	purposeRevoke  = "revoke"
	purposeOut     = "signout"
)

// welcomeView is what came of a form on the page that asks for an address.
type welcomeView struct {
	email      string // as it was typed
	emailFault string // the key of a text, "" = none
	fault      *fault
	note       string // the key of a text, "" = none
}

// welcome answers the page that asks for an address.
func (v *visit) welcome(view welcomeView) {
	if err := v.remember(account.Email{}); err != nil {
		v.p.config.Frame.Fail(v.w, v.r, err)
		return
	}
	l := v.l
	form := Group{
		v.form("/codes", purposeCode, "card stack",
			field(emailInput(view.email, l, describedBy("email", "email-help", view.emailFault)),
				v.problem("email", view.emailFault, nil), P(Class("fine"), ID("email-help"), l.T("welcome.help"))),
			submit("button", l.T("welcome.send"))),
		v.printed(),
	}
	if v.p.config.Mail == MailOff {
		form = Group{Div(Class("notice bad"), P(l.T("welcome.off")))}
	}
	v.write(v.refused(view.fault, view.emailFault), "nav.account", Group{
		H1(l.T("welcome.title")), P(Class("lead"), l.T("welcome.lead")), v.note(view.note), v.notice(view.fault), v.transition(), form,
		H2(l.T("welcome.how")), Ol(Class("prose"), Li(l.T("welcome.how.1")),
			Li(l.T("welcome.how.2", int(account.CodeLifetime.Minutes()))), Li(l.T("welcome.how.3", account.KeysActiveMax))),
		P(Class("explain"), l.T("welcome.privacy")),
		P(A(l.Href("/docs"), l.T("welcome.docs"))),
	})
}

// transition tells the end of anonymous access, if there is one.
func (v *visit) transition() Node {
	required := v.p.config.Gate.Transition().RequiredAt
	if required.IsZero() {
		return nil
	}
	return Div(Class("notice"), P(v.l.T("transition.required"), Text(" "), v.l.Time(required), Text(". "), v.l.T("transition.after")))
}

// printed tells where codes are when no mail server sends them.
func (v *visit) printed() Node {
	return If(v.p.config.Mail == MailPrinted, Div(Class("notice"), P(v.l.T("printed"))))
}

// show answers the account: the keys of a session, or the way to one.
func (p *Pages) show(v *visit) {
	if v.inside {
		v.home(homeView{note: noteOf(v.r)})
		return
	}
	v.welcome(welcomeView{note: noteOf(v.r)})
}

// noteOf is what the page before has done: a word of a closed list, so that nobody can put texts onto the page by a link.
func noteOf(r *pages.Request) string {
	switch done := r.URL.Query().Get("done"); done {
	case "revoked", "out":
		return "note." + done
	}
	return ""
}

// codeView is what came of a form on the page that asks for a code.
type codeView struct {
	email                 string
	emailFault, codeFault string
	fault                 *fault
}

// showCode asks for the code of the login mail.
func (p *Pages) showCode(v *visit) {
	if v.inside || !v.known || v.login.email.IsZero() {
		v.goTo(rootPage)
		return
	}
	v.askCode(codeView{email: v.login.email.String()})
}

func (v *visit) askCode(view codeView) {
	if err := v.remember(account.Email{}); err != nil {
		v.p.config.Frame.Fail(v.w, v.r, err)
		return
	}
	l := v.l
	code := Input(ID("code"), Class("digits"), Name("code"), Type("text"), Attr("inputmode", "numeric"), AutoComplete("one-time-code"),
		MaxLength("16"), Attr("size", "10"), Required(), AutoFocus(), describedBy("code", "code-help", view.codeFault))
	v.write(v.refused(view.fault, view.emailFault, view.codeFault), "code.title", Group{
		H1(l.T("code.title")), P(Class("lead"), l.T("code.lead")), v.notice(view.fault),
		v.form("/sessions", purposeSession, "card stack",
			field(emailInput(view.email, l, describedBy("email", "", view.emailFault)), v.problem("email", view.emailFault, nil)),
			field(Group{Label(For("code"), l.T("code.code")), code}, v.problem("code", view.codeFault, Role("alert")),
				P(Class("fine"), ID("code-help"), l.T("code.help", int(account.CodeLifetime.Minutes()), account.CodeTriesMax))),
			submit("button", l.T("code.enter"))),
		v.printed(),
		H2(l.T("code.none")), P(l.T("code.again")),
		v.form("/codes", purposeCode, "inline", Input(Type("hidden"), Name("email"), Value(view.email)),
			submit("button plain", l.T("code.resend")), Text(" "), A(l.Href(rootPage), l.T("code.other"))),
	})
}

func emailInput(email string, l *pages.Localizer, described Node) Node {
	return Group{Label(For("email"), l.T("welcome.email")), Input(ID("email"), Name("email"), Type("email"), Attr("inputmode", "email"),
		AutoComplete("email"), MaxLength("254"), Required(), Value(email), described)}
}

// requestCode has a code sent. What it answers does not tell whether the address has an account (K3).
func (p *Pages) requestCode(v *visit) {
	const operation = "POST /account/codes"
	typed := v.field("email")
	if !v.mayLogIn(purposeCode) {
		v.welcome(welcomeView{email: typed, fault: staleForm()})
		return
	}
	email, err := account.ParseEmail(typed)
	if err != nil {
		v.welcome(welcomeView{email: typed, emailFault: "fault.email"})
		return
	}
	err = p.config.Accounts.RequestCode(email, v.r.Address)
	if err == nil || is(err, engine.CodeRequestedTooSoon) {
		if err := v.remember(email); err != nil {
			p.config.Frame.Fail(v.w, v.r, err)
			return
		}
	}
	switch f := faultOf(err); {
	case err == nil:
		v.log(operation, http.StatusSeeOther, "")
		v.goTo(rootPage + "/code")
	case f == nil:
		p.config.Frame.Fail(v.w, v.r, err)
	case is(err, engine.CodeRequestedTooSoon): // there is a code: this is where to type it
		v.askCode(codeView{email: email.String(), fault: f})
	default:
		v.log(operation, f.Status, codeOf(err))
		v.welcome(welcomeView{email: typed, fault: f})
	}
}

// openSession takes a code.
func (p *Pages) openSession(v *visit) {
	const operation = "POST /account/sessions"
	view := codeView{email: v.field("email")}
	if !v.mayLogIn(purposeSession) {
		view.fault = staleForm()
		v.askCode(view)
		return
	}
	code := v.digits("code")
	email, err := account.ParseEmail(view.email)
	if err != nil {
		view.emailFault = "fault.email"
	}
	if !isCode(code) {
		view.codeFault = "fault.digits"
	}
	if view.emailFault != "" || view.codeFault != "" {
		v.askCode(view)
		return
	}
	token, expires, err := p.config.Accounts.OpenSession(email, code, v.r.Address)
	f := faultOf(err)
	switch {
	case err == nil:
		p.setCookie(v.w, sessionCookie, token.Reveal(), expires.Sub(v.r.Now))
		p.setCookie(v.w, loginCookie, "", 0)
		v.log(operation, http.StatusSeeOther, "")
		v.goTo(rootPage)
		return
	case f == nil:
		p.config.Frame.Fail(v.w, v.r, err)
		return
	case is(err, engine.CodeInvalidCode):
		view.codeFault = "fault.invalid_code"
	default:
		view.fault = f
	}
	v.log(operation, f.Status, codeOf(err))
	v.askCode(view)
}

// isCode tells what may be a code: eight digits.
func isCode(text string) bool {
	return len(text) == account.CodeDigits && !strings.ContainsFunc(text, func(c rune) bool { return c < '0' || c > '9' })
}

// signOut closes the session. The browser forgets it in any case: what can't be closed now ends by itself within a quarter of an hour.
func (p *Pages) signOut(v *visit) {
	if !v.inside {
		v.goTo(rootPage)
		return
	}
	if !p.forms.good(v.sent.Get(formField), purposeOut, v.owner()) {
		v.home(homeView{fault: staleForm()})
		return
	}
	err := p.config.Accounts.CloseSession(v.session.Digest())
	if err != nil && !is(err, engine.CodeInvalidSession) {
		p.config.Logger.Warn("a session was not closed; it ends by itself", "requestId", v.r.ID, "cause", err)
	}
	v.log("POST /account/signout", http.StatusSeeOther, codeOf(err))
	p.setCookie(v.w, sessionCookie, "", 0)
	v.goTo(rootPage + "?done=out")
}
