package account

import (
	"net/http"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/pages"
)

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

// showCode sends the page with the form for a login code.
func (p *Pages) showCode(v *pageContext) {
	if v.hasSession || !v.hasLogin || v.login.email.IsZero() {
		v.redirect(rootPage)
		return
	}
	v.codePage(formView{email: v.login.email.String()})
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
		v.redirect(rootPage)
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
