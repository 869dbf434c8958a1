package account

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/pages"
)

// homeView is the page of a session.
type homeView struct {
	KeyForm, RevokeForm, OutForm string // tokens
	Keys                         []keyView
	Room                         bool   // for one more active key
	Name                         string // as it was typed
	NameFault                    string // the key of a text, "" = none
	Fault                        *fault
	Note                         string
	Suspended                    bool
	Counted                      bool // limits are on
	Day, Minute                  windowView
	Required                     account.Transition
	Announced                    bool
	KeysMax                      int
	SessionMinutes               int
	Now                          time.Time
}

// keyView is a key in the list.
type keyView struct {
	account.KeyRecord
	Label string // tells it from the others: its name, else its last characters
}

// windowView is what is used of a window.
type windowView struct {
	Key         string // of its name
	Used, Limit int
	UsedText    string // with separators
	LimitText   string
	Reset       time.Time // zero: told in seconds
	Seconds     int       // until there is more room; 0 = there is none to wait for
}

// dayView tells when the day's quota is renewed.
func dayView(w account.Window) windowView {
	view := viewOf("usage.day", w)
	view.Reset = w.Reset
	return view
}

// minuteView tells in how many seconds there is more room, rounded up as in the headers (L4).
func minuteView(w account.Window, now time.Time) windowView {
	view := viewOf("usage.minute", w)
	if view.Used > 0 {
		view.Seconds = max(1, int((w.Reset.Sub(now)+time.Second-1)/time.Second))
	}
	return view
}

func viewOf(key string, w account.Window) windowView {
	used := max(0, w.Limit-w.Remaining)
	return windowView{Key: key, Used: used, Limit: w.Limit, UsedText: grouped(used), LimitText: grouped(w.Limit)}
}

// grouped is a count with a comma between thousands, as both languages write it in the Dominican Republic.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// home answers the page of a session, or the way to one when it is over.
func (v *visit) home(view homeView) {
	status := v.refused(view.Fault)
	if view.NameFault != "" {
		status = http.StatusUnprocessableEntity
	}
	err := v.gather(&view)
	if is(err, engine.CodeInvalidSession) {
		v.over(status)
		return
	}
	if err != nil {
		v.p.config.Frame.Fail(v.w, v.r, err)
		return
	}
	view.KeyForm, view.RevokeForm, view.OutForm = v.token(purposeKey), v.token(purposeRevoke), v.token(purposeOut)
	view.Required, view.Announced = v.transition()
	view.KeysMax, view.SessionMinutes, view.Now = account.KeysActiveMax, int(account.SessionLifetime.Minutes()), v.r.Now
	v.write(v.p.bodies.home, status, titles{pages.Spanish: "Mi cuenta", pages.English: "My account"}, &view)
}

// over asks for an address again: the browser forgets a session that opens nothing any more.
func (v *visit) over(status int) {
	v.p.setCookie(v.w, sessionCookie, "", 0)
	v.inside = false
	f := &fault{Key: string(engine.CodeInvalidSession), Status: http.StatusForbidden}
	if status == http.StatusOK {
		f.Status = status // somebody looked: nothing was refused
	}
	v.welcome(welcomeView{Fault: f})
}

// gather asks the accounts for what the page shows.
func (v *visit) gather(view *homeView) error {
	keys, err := v.p.config.Accounts.Keys(v.session.Digest())
	if err != nil {
		return err
	}
	active := 0
	for i := range keys {
		if keys[i].Active() {
			active++
			if _, err := v.p.config.Accounts.KeyUsage(keys[i].Digest); is(err, engine.CodeAccountSuspended) {
				view.Suspended = true
			}
		}
		view.Keys = append(view.Keys, keyView{keys[i], labelOf(&keys[i])})
	}
	// Active ones first, the newest of each kind first.
	slices.SortStableFunc(view.Keys, func(a, b keyView) int {
		if a.Active() != b.Active() {
			if a.Active() {
				return -1
			}
			return 1
		}
		return b.CreatedAt.Compare(a.CreatedAt)
	})
	view.Room = active < account.KeysActiveMax
	if view.Counted = v.p.config.Gate.Enforced(); !view.Counted {
		return nil
	}
	verdict, err := v.p.config.Accounts.Usage(v.session.Digest())
	view.Day, view.Minute = dayView(verdict.Day), minuteView(verdict.Minute, v.r.Now)
	return err
}

func labelOf(key *account.KeyRecord) string {
	if key.Name != "" {
		return key.Name
	}
	return "…" + key.Hint
}

// madeView is the page that shows a key, once.
type madeView struct {
	Secret  string
	Key     keyView
	Service string // the address of the service, for the line to be copied
}

// createKey makes a key and shows it. Its form is good once, so neither a second click nor a reload makes another one.
func (p *Pages) createKey(v *visit) {
	const operation = "POST /account/keys"
	if !v.inside {
		v.over(http.StatusForbidden)
		return
	}
	name := v.field("name")
	if !isName(name) {
		v.home(homeView{Name: name, NameFault: "fault.name"})
		return
	}
	switch p.forms.spend(v.sent.Get(formField), purposeKey, v.owner()) {
	case notSpent:
		v.home(homeView{Name: name, Fault: staleForm()})
		return
	case spentBefore:
		v.home(homeView{Fault: usedForm()})
		return
	case noRoom:
		v.home(homeView{Name: name, Fault: busy()})
		return
	case spentNow:
	}
	key, secret, err := p.config.Accounts.CreateKey(v.session.Digest(), name)
	if err != nil {
		v.failed(operation, err, homeView{Name: name})
		return
	}
	v.log(operation, http.StatusCreated, "")
	v.write(p.bodies.made, http.StatusCreated, titles{pages.Spanish: "Su clave nueva", pages.English: "Your new key"},
		&madeView{secret.Reveal(), keyView{key, labelOf(&key)}, p.service(v.r)})
}

// isName tells a name that stays on the line on which a list or a log shows it.
func isName(text string) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= account.KeyNameMax &&
		!strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) || c == '\u2028' || c == '\u2029' })
}

// revokeKey revokes a key of the account. It can be repeated.
func (p *Pages) revokeKey(v *visit) {
	const operation = "POST /account/keys/{id}/revoke"
	if !v.inside {
		v.over(http.StatusForbidden)
		return
	}
	if !p.forms.good(v.sent.Get(formField), purposeRevoke, v.owner()) {
		v.home(homeView{Fault: staleForm()})
		return
	}
	if err := p.config.Accounts.RevokeKey(v.session.Digest(), v.r.PathValue("id")); err != nil {
		v.failed(operation, err, homeView{})
		return
	}
	v.log(operation, http.StatusSeeOther, "")
	v.goTo(rootPage + "?done=revoked")
}

// failed answers an error of the accounts on the page of the session.
func (v *visit) failed(operation string, err error, view homeView) {
	if view.Fault = faultOf(err); view.Fault == nil {
		v.p.config.Frame.Fail(v.w, v.r, err)
		return
	}
	v.log(operation, view.Fault.Status, codeOf(err))
	v.home(view)
}

// service is where the service is reached: as the operator says, else as this browser does. The page is for this browser alone.
func (p *Pages) service(r *pages.Request) string {
	if p.config.PublicURL != "" {
		return p.config.PublicURL
	}
	if p.config.Secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
