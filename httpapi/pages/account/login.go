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

// signInView is the input of signInPage. Messages are given as keys of pages.Texts. After a form was sent, it describes
// the result of the form.
type signInView struct {
	email       string     // as typed
	emailErrKey string     // key of the error message for the e-mail address, or ""
	formErr     *formError // may be nil
	note        string     // key of a success message, or ""
}

// signInPage sends the page with the form for an e-mail address.
func (v *pageContext) signInPage(view signInView) {
	if err := v.setLoginCookie(account.Email{}); err != nil {
		v.p.config.Frame.Fail(v.w, v.r, err)
		return
	}
	l := v.l
	form := Group{
		v.form("/codes", "card stack",
			field(emailInput(view.email, l, describedBy("email", "email-help", view.emailErrKey)),
				v.fieldError("email", view.emailErrKey, nil), P(Class("fine"), ID("email-help"), l.T("welcome.help"))),
			submit("button", l.T("welcome.send"))),
		v.mailPrintedNotice(),
	}
	if v.p.config.Mail == MailOff {
		form = Group{Div(Class("notice bad"), P(l.T("welcome.off")))}
	}
	v.write(v.statusOf(view.formErr, view.emailErrKey), "nav.account", Group{
		H1(l.T("welcome.title")), P(Class("lead"), l.T("welcome.lead")), v.note(view.note), v.notice(view.formErr), v.keysRequiredNotice(), form,
		H2(l.T("welcome.how")), Ol(Class("prose"), Li(l.T("welcome.how.1")),
			Li(l.T("welcome.how.2", int(account.CodeLifetime.Minutes()))), Li(l.T("welcome.how.3", account.KeysActiveMax))),
		P(Class("explain"), l.T("welcome.privacy")),
		P(A(l.Href("/docs"), l.T("welcome.docs"))),
	})
}

// keysRequiredNotice says from when on API keys are required. It returns nil if no date is announced.
func (v *pageContext) keysRequiredNotice() Node {
	required := v.p.config.Access.KeyPolicy().RequiredAt
	if required.IsZero() {
		return nil
	}
	return Div(Class("notice"), P(v.l.T("transition.required"), Text(" "), v.l.Time(required), Text(". "), v.l.T("transition.after")))
}

// mailPrintedNotice says, in development, where login codes are printed.
func (v *pageContext) mailPrintedNotice() Node {
	return If(v.p.config.Mail == MailPrinted, Div(Class("notice"), P(v.l.T("printed"))))
}

func (p *Pages) show(v *pageContext) {
	if v.hasSession {
		v.homePage(homeView{note: noteOf(v.r)})
		return
	}
	v.signInPage(signInView{note: noteOf(v.r)})
}

// noteOf returns the key of the success message that redirect has put in the query. It accepts only known values, so
// that a link can't put other texts on the page.
func noteOf(r *pages.Request) string {
	switch done := r.URL.Query().Get("done"); done {
	case "revoked", "out":
		return "note." + done
	}
	return ""
}

// codeView is the input of codePage, the page with the form for a login code. After a form was sent, it describes the
// result of the form.
type codeView struct {
	email                   string
	emailErrKey, codeErrKey string // keys of the error messages for the e-mail address and the code, or ""
	formErr                 *formError
}

// showCode sends the page with the form for a login code.
func (p *Pages) showCode(v *pageContext) {
	if v.hasSession || !v.hasLogin || v.login.email.IsZero() {
		v.redirect(rootPage)
		return
	}
	v.codePage(codeView{email: v.login.email.String()})
}

func (v *pageContext) codePage(view codeView) {
	if err := v.setLoginCookie(account.Email{}); err != nil {
		v.p.config.Frame.Fail(v.w, v.r, err)
		return
	}
	l := v.l
	code := Input(ID("code"), Class("digits"), Name("code"), Type("text"), Attr("inputmode", "numeric"), AutoComplete("one-time-code"),
		MaxLength("16"), Attr("size", "10"), Required(), AutoFocus(), describedBy("code", "code-help", view.codeErrKey))
	v.write(v.statusOf(view.formErr, view.emailErrKey, view.codeErrKey), "code.title", Group{
		H1(l.T("code.title")), P(Class("lead"), l.T("code.lead")), v.notice(view.formErr),
		v.form("/sessions", "card stack",
			field(emailInput(view.email, l, describedBy("email", "", view.emailErrKey)), v.fieldError("email", view.emailErrKey, nil)),
			field(Group{Label(For("code"), l.T("code.code")), code}, v.fieldError("code", view.codeErrKey, Role("alert")),
				P(Class("fine"), ID("code-help"), l.T("code.help", int(account.CodeLifetime.Minutes()), account.CodeTriesMax))),
			submit("button", l.T("code.enter"))),
		v.mailPrintedNotice(),
		H2(l.T("code.none")), P(l.T("code.again")),
		v.form("/codes", "inline", Input(Type("hidden"), Name("email"), Value(view.email)),
			submit("button plain", l.T("code.resend")), Text(" "), A(l.Href(rootPage), l.T("code.other"))),
	})
}

func emailInput(email string, l *pages.Localizer, described Node) Node {
	return Group{Label(For("email"), l.T("welcome.email")), Input(ID("email"), Name("email"), Type("email"), Attr("inputmode", "email"),
		AutoComplete("email"), MaxLength("254"), Required(), Value(email), described)}
}

// requestCode requests a login code. The response does not show whether the e-mail address has an account.
func (p *Pages) requestCode(v *pageContext) {
	const operation = "POST /account/codes"
	emailText := v.field("email")
	if !v.hasCookie() {
		v.signInPage(signInView{email: emailText, formErr: noCookie()})
		return
	}
	email, err := account.ParseEmail(emailText)
	if err != nil {
		v.signInPage(signInView{email: emailText, emailErrKey: "fault.email"})
		return
	}
	err = p.config.Accounts.RequestCode(email, v.requester())
	if err == nil || codeOf(err) == engine.CodeRequestedTooSoon {
		if err := v.setLoginCookie(email); err != nil {
			p.config.Frame.Fail(v.w, v.r, err)
			return
		}
	}
	switch f := formErrorOf(err); {
	case err == nil:
		v.log(operation, http.StatusSeeOther, "")
		v.redirect(rootPage + "/code")
	case f == nil:
		p.config.Frame.Fail(v.w, v.r, err)
	case codeOf(err) == engine.CodeRequestedTooSoon: // the user can still enter the previous code
		v.codePage(codeView{email: email.String(), formErr: f})
	default:
		v.log(operation, f.Status, codeOf(err))
		v.signInPage(signInView{email: emailText, formErr: f})
	}
}

func (p *Pages) openSession(v *pageContext) {
	const operation = "POST /account/sessions"
	view := codeView{email: v.field("email")}
	if !v.hasCookie() {
		view.formErr = noCookie()
		v.codePage(view)
		return
	}
	code := v.digits("code")
	email, err := account.ParseEmail(view.email)
	if err != nil {
		view.emailErrKey = "fault.email"
	}
	if !isLoginCode(code) {
		view.codeErrKey = "fault.digits"
	}
	if view.emailErrKey != "" || view.codeErrKey != "" {
		v.codePage(view)
		return
	}
	token, expires, err := p.config.Accounts.OpenSession(email, code, v.requester())
	f := formErrorOf(err)
	switch {
	case err == nil:
		v.setCookie(sessionCookie, token.Reveal(), expires.Sub(v.r.Now))
		v.setCookie(loginCookie, loginState{browserID: v.login.browserID}.encode(), knownBrowserLifetime)
		v.log(operation, http.StatusSeeOther, "")
		v.redirect(rootPage)
		return
	case f == nil:
		p.config.Frame.Fail(v.w, v.r, err)
		return
	case codeOf(err) == engine.CodeInvalidCode:
		view.codeErrKey = "fault.invalid_code"
	default:
		view.formErr = f
	}
	v.log(operation, f.Status, codeOf(err))
	v.codePage(view)
}

// isLoginCode reports whether a text has the format of a login code.
func isLoginCode(text string) bool {
	return len(text) == account.CodeDigits && !strings.ContainsFunc(text, func(c rune) bool { return c < '0' || c > '9' })
}

// signOut closes the session. If that fails, it still deletes the cookie, because the session expires within 15
// minutes.
func (p *Pages) signOut(v *pageContext) {
	if !v.hasSession {
		v.redirect(rootPage)
		return
	}
	err := p.config.Accounts.CloseSession(v.session.Digest())
	if err != nil && codeOf(err) != engine.CodeInvalidSession {
		p.config.Logger.Warn("a session was not closed; it ends by itself", "requestId", v.r.ID, "cause", err)
	}
	v.log("POST /account/signout", http.StatusSeeOther, codeOf(err))
	v.setCookie(sessionCookie, "", 0)
	v.redirect(rootPage + "?done=out")
}
