package account

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/pages"
)

// homePage sends the page with keys and usage, or the sign-in page if the session has expired.
func (v *pageContext) homePage(view formView) {
	status := v.statusOf(view)
	keys, suspended, err := v.keys()
	var usage Node
	if err == nil {
		usage, err = v.usage()
	}
	switch {
	case engine.CodeOf(err) == engine.CodeInvalidSession:
		v.sessionEnded(status)
		return
	case err != nil:
		v.p.config.Frame.Fail(v.w, v.r, err)
		return
	}
	l := v.l
	v.write(status, "nav.account", Group{
		H1(l.T("home.title")), v.notices(view),
		If(suspended, Div(Class("notice bad"), P(l.T("home.suspended"), v.p.config.Frame.Contact(" "+l.Str("home.suspended.contact"))))),
		v.keysRequiredNotice(),
		Section(Class("stack"), Aria("labelledby", "keys"), H2(ID("keys"), l.T("home.keys")), v.keyList(keys), v.keyForm(view, keys)),
		Section(Class("stack"), Aria("labelledby", "usage"), H2(ID("usage"), l.T("usage.title")), usage),
		v.form("/signout", "inline signout", submit("button plain", l.T("home.out")),
			P(Class("fine"), l.T("home.session", int(account.SessionLifetime.Minutes())))),
	})
}

func (v *pageContext) keyList(keys []account.KeyRecord) Node {
	if len(keys) == 0 {
		return P(v.l.T("home.none"))
	}
	return Ul(Class("keys"), Map(keys, func(key account.KeyRecord) Node {
		class := "card key revoked"
		if key.Active() {
			class = "card key"
		}
		return Li(Class(class), Div(v.keyFacts(&key)), v.revokeForm(&key))
	}))
}

func (v *pageContext) keyFacts(key *account.KeyRecord) Node {
	l := v.l
	tag := func(class, text string) Node { return Group{Text(" "), Span(Class(class), l.T(text))} }
	badge, detail := tag("tag", "home.revoked"), Group{l.T("home.ended"), Text(" "), l.Time(key.RevokedAt)}
	switch {
	case key.Active() && key.LastUsed.IsZero():
		badge, detail = tag("tag good", "home.active"), Group{l.T("home.unused")}
	case key.Active():
		badge, detail = tag("tag good", "home.active"), Group{l.T("home.used"), Text(" "), l.Time(key.LastUsed)}
	}
	return Group{
		P(Class("name"), Text(labelOf(key)), badge),
		P(Class("fine"), l.T("home.hint"), Text(" "), Code(Text("…"+key.Hint))),
		P(Class("fine"), l.T("home.made"), Text(" "), l.Time(key.CreatedAt), Text(" · "), detail),
	}
}

func (v *pageContext) revokeForm(key *account.KeyRecord) Node {
	if !key.Active() {
		return nil
	}
	label := Span(Class("quiet"), Text(" "+labelOf(key)))
	return Details(Class("revoke"), Summary(v.l.T("home.revoke"), label),
		v.form("/keys/"+key.ID+"/revoke", "", P(v.l.T("home.revoke.sure")),
			submit("button danger", v.l.T("home.revoke.do"), label)))
}

func (v *pageContext) keyForm(view formView, keys []account.KeyRecord) Node {
	active := 0
	for i := range keys {
		if keys[i].Active() {
			active++
		}
	}
	l := v.l
	if active >= account.KeysActiveMax {
		return P(Class("notice"), l.T("home.full", account.KeysActiveMax))
	}
	return v.form("/keys", "card stack", H3(l.T("home.new")),
		v.field(view, "name", "home.name", l.Str("home.name.help"), Type("text"), MaxLength("80"), AutoComplete("off"), Value(view.name)),
		submit("button", l.T("home.make")))
}

// usage returns the numbers of used and remaining requests, for today and for the last minute.
func (v *pageContext) usage() (Node, error) {
	if !v.p.config.Access.LimitsEnforced() {
		return P(v.l.T("usage.off")), nil
	}
	quota, err := v.p.config.Accounts.Usage(v.session.Digest())
	l := v.l
	renewed := P(Class("fine"), l.T("usage.reset"), Text(" "), l.Time(quota.Day.Reset, Data("local", l.Str("usage.local"))))
	seconds := max(1, int((quota.Minute.Reset.Sub(v.r.Now)+time.Second-1)/time.Second))
	wait := If(quota.Minute.Remaining < quota.Minute.Limit, P(Class("fine"), Text(l.Count("usage.room", seconds))))
	windows := Dl(Class("usage"), v.window("usage.day", quota.Day, renewed), v.window("usage.minute", quota.Minute, wait))
	return Group{P(l.T("usage.lead")), windows}, err
}

func (v *pageContext) window(key string, w account.Window, note Node) Node {
	used := max(0, w.Limit-w.Remaining)
	return Div(Dt(v.l.T(key)), Dd(
		El("meter", Min("0"), Max(strconv.Itoa(w.Limit)), Value(strconv.Itoa(used)), Aria("label", v.l.Str(key))),
		P(v.l.T("usage.of", pages.Grouped(used), pages.Grouped(w.Limit))), note))
}

// sessionEnded deletes the session cookie and sends the sign-in page. status is the status that the page would have in
// an open session.
func (v *pageContext) sessionEnded(status int) {
	v.setCookie(sessionCookie, "", 0)
	v.hasSession = false
	f := &formError{Key: string(engine.CodeInvalidSession), Status: http.StatusForbidden}
	if status == http.StatusOK {
		f.Status = status // for a GET, an expired session is not an error
	}
	v.signInPage(formView{formErr: f})
}

// keys returns the keys of the account, and whether the account is suspended. Active keys come before revoked ones, and
// newer keys before older ones.
func (v *pageContext) keys() (keys []account.KeyRecord, suspended bool, err error) {
	keys, err = v.p.config.Accounts.Keys(v.session.Digest())
	for i := range keys {
		if keys[i].Active() {
			_, err := v.p.config.Accounts.KeyUsage(keys[i].Digest)
			suspended = suspended || engine.CodeOf(err) == engine.CodeAccountSuspended
		}
	}
	keys = slices.Clone(keys)
	slices.SortStableFunc(keys, func(a, b account.KeyRecord) int {
		if a.Active() != b.Active() {
			if a.Active() {
				return -1
			}
			return 1
		}
		return b.CreatedAt.Compare(a.CreatedAt)
	})
	return keys, suspended, err
}

// labelOf returns the name of an API key or, if it has no name, the last characters of the key.
func labelOf(key *account.KeyRecord) string {
	if key.Name != "" {
		return key.Name
	}
	return "…" + key.Hint
}

// createKey creates a key and shows it. It does not redirect, so a browser asks before a reload sends the form again.
func (p *Pages) createKey(v *pageContext) {
	if !v.hasSession {
		v.sessionEnded(http.StatusForbidden)
		return
	}
	name := v.value("name")
	if !account.ValidKeyName(name) {
		v.homePage(formView{name: name, fieldErrs: map[string]string{"name": "fault.name"}})
		return
	}
	key, secret, err := p.config.Accounts.CreateKey(v.session.Digest(), name)
	if err != nil {
		v.showError(err, formView{name: name})
		return
	}
	v.log(http.StatusCreated, "")
	v.write(http.StatusCreated, "made.title", v.newKeyPage(labelOf(&key), secret.Reveal()))
}

func (v *pageContext) newKeyPage(label, secret string) Group {
	l := v.l
	copyButton := func(class, id, text string) Node {
		return P(Button(Class(class), Type("button"), Hidden(""), Data("copy", id), Data("done", l.Str("made.copied")),
			Data("failed", l.Str("made.failed")), l.T(text)))
	}
	command := "curl -H 'Authorization: Bearer " + secret + "' \\\n  '" + v.p.config.Frame.ServiceURL(v.r) + "/v1/rates/best?currency=USD&operation=buy&limit=3'"
	return Group{
		H1(l.T("made.title")), P(Class("lead"), l.T("made.lead")),
		Section(Class("card stack"), Aria("labelledby", "secret-name"), H2(ID("secret-name"), Text(label)),
			P(Code(Class("secret"), ID("secret"), Attr("translate", "no"), Text(secret))), copyButton("button", "secret", "made.copy")),
		Div(Class("notice"), P(l.T("made.once"))),
		H2(l.T("made.try")),
		Pre(Class("block"), ID("curl"), Attr("translate", "no"), TabIndex("0"), Aria("label", l.Str("made.line")), Text(command)),
		copyButton("button plain", "curl", "made.copy.line"),
		H2(l.T("made.keep")), Ul(Class("prose"), Li(l.T("made.keep.1")), Li(l.T("made.keep.2")), Li(l.T("made.keep.3"))),
		P(A(Class("button"), l.Href(rootPage), l.T("made.back"))),
	}
}

// revokeKey revokes a key. Revoking a revoked key is not an error.
func (p *Pages) revokeKey(v *pageContext) {
	if !v.hasSession {
		v.sessionEnded(http.StatusForbidden)
		return
	}
	if err := p.config.Accounts.RevokeKey(v.session.Digest(), v.r.PathValue("id")); err != nil {
		v.showError(err, formView{})
		return
	}
	v.log(http.StatusSeeOther, "")
	v.redirect(rootPage + "?done=revoked")
}

// showError shows an error of a form on the page with the keys.
func (v *pageContext) showError(err error, view formView) {
	if view.formErr = formErrorOf(err); view.formErr == nil {
		v.p.config.Frame.Fail(v.w, v.r, err)
		return
	}
	v.log(view.formErr.Status, engine.CodeOf(err))
	v.homePage(view)
}
