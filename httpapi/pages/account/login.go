package account

import (
	"net/http"
	"strings"

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

// welcomeView is the page that asks for an address.
type welcomeView struct {
	Form       string
	Email      string // as it was typed
	EmailFault string // the key of a text, "" = none
	Fault      *fault
	Note       string // the key of a text, "" = none
	Sent       bool   // letters leave the node
	Printed    bool   // codes are printed where the node runs
	Required   account.Transition
	Announced  bool // keys will be mandatory, or are
	Minutes    int  // a code's lifetime
	KeysMax    int
}

// welcome answers the page that asks for an address.
func (v *visit) welcome(view welcomeView) {
	if err := v.remember(account.Email{}); err != nil {
		v.p.config.Frame.Fail(v.w, v.r, err)
		return
	}
	status := v.refused(view.Fault)
	if view.EmailFault != "" {
		status = http.StatusUnprocessableEntity
	}
	mail := v.p.config.Mail
	view.Form, view.Sent, view.Printed = v.token(purposeCode), mail != MailOff, mail == MailPrinted
	view.Required, view.Announced = v.transition()
	view.Minutes, view.KeysMax = int(account.CodeLifetime.Minutes()), account.KeysActiveMax
	v.write(v.p.bodies.welcome, status, titles{pages.Spanish: "Mi cuenta", pages.English: "My account"}, &view)
}

// transition is the end of anonymous access, and whether there is one.
func (v *visit) transition() (account.Transition, bool) {
	t := v.p.config.Gate.Transition()
	return t, !t.RequiredAt.IsZero()
}

// show answers the account: the keys of a session, or the way to one.
func (p *Pages) show(v *visit) {
	if v.inside {
		v.home(homeView{Note: noteOf(v.r)})
		return
	}
	v.welcome(welcomeView{Note: noteOf(v.r)})
}

// noteOf is what the page before has done: a word of a closed list, so that nobody can put texts onto the page by a link.
func noteOf(r *pages.Request) string {
	switch done := r.URL.Query().Get("done"); done {
	case "revoked", "out":
		return "note." + done
	}
	return ""
}

// codeView is the page that asks for a code.
type codeView struct {
	Form, Again           string // tokens: of this form, of the one that asks for another code
	Email                 string
	EmailFault, CodeFault string
	Fault                 *fault
	Printed               bool
	Minutes, Tries        int
}

// showCode asks for the code of the letter.
func (p *Pages) showCode(v *visit) {
	if v.inside || !v.known || v.login.email.IsZero() {
		v.goTo(rootPage)
		return
	}
	v.askCode(codeView{Email: v.login.email.String()})
}

func (v *visit) askCode(view codeView) {
	if err := v.remember(account.Email{}); err != nil {
		v.p.config.Frame.Fail(v.w, v.r, err)
		return
	}
	status := v.refused(view.Fault)
	if view.EmailFault != "" || view.CodeFault != "" {
		status = http.StatusUnprocessableEntity
	}
	view.Form, view.Again = v.token(purposeSession), v.token(purposeCode)
	view.Printed = v.p.config.Mail == MailPrinted
	view.Minutes, view.Tries = int(account.CodeLifetime.Minutes()), account.CodeTriesMax
	v.write(v.p.bodies.code, status, titles{pages.Spanish: "Escriba el código", pages.English: "Enter the code"}, &view)
}

// requestCode has a code sent. What it answers does not tell whether the address has an account (K3).
func (p *Pages) requestCode(v *visit) {
	const operation = "POST /account/codes"
	typed := v.field("email")
	if !v.mayLogIn(purposeCode) {
		v.welcome(welcomeView{Email: typed, Fault: staleForm()})
		return
	}
	email, err := account.ParseEmail(typed)
	if err != nil {
		v.welcome(welcomeView{Email: typed, EmailFault: "fault.email"})
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
		v.askCode(codeView{Email: email.String(), Fault: f})
	default:
		v.log(operation, f.Status, codeOf(err))
		v.welcome(welcomeView{Email: typed, Fault: f})
	}
}

// openSession takes a code.
func (p *Pages) openSession(v *visit) {
	const operation = "POST /account/sessions"
	view := codeView{Email: v.field("email")}
	if !v.mayLogIn(purposeSession) {
		view.Fault = staleForm()
		v.askCode(view)
		return
	}
	code := v.digits("code")
	email, err := account.ParseEmail(view.Email)
	if err != nil {
		view.EmailFault = "fault.email"
	}
	if !isCode(code) {
		view.CodeFault = "fault.digits"
	}
	if view.EmailFault != "" || view.CodeFault != "" {
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
		view.CodeFault = "fault.invalid_code"
	default:
		view.Fault = f
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
		v.home(homeView{Fault: staleForm()})
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
