package actors

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// codeRefused says that a limit against guessing refused a try of a code. It changes nothing: it goes to
// the log so that the answer takes as long as that to a wrong code, and so that an operator finds it.
type codeRefused struct {
	Email engine.EmailID
	At    time.Time
}

// registryRecord is nil for an event that no record holds.
func registryRecord(event engine.RegistryEvent) isRecord_Event {
	switch e := event.(type) {
	case *engine.CodeIssued:
		r := &RecordCodeIssued{Email: emailRecord(e.Email), Steady: int64(e.Steady), Mailed: e.Mailed}
		r.At, r.AtNanos = instant(e.At)
		if e.Sealed != (engine.CodeSeal{}) {
			r.Sealed = e.Sealed[:]
		}
		return &Record_CodeIssued{r}
	case *engine.CodeFailed:
		r := &RecordCodeFailed{Email: emailRecord(e.Email), Steady: int64(e.Steady)}
		r.At, r.AtNanos = instant(e.At)
		return &Record_CodeFailed{r}
	case *engine.SessionOpened:
		r := &RecordSessionOpened{Account: e.Account, New: e.New, Email: emailRecord(e.Email), Token: e.Token[:], Steady: int64(e.Steady)}
		r.Expires, r.ExpiresNanos = instant(e.Expires)
		r.At, r.AtNanos = instant(e.At)
		return &Record_SessionOpened{r}
	case *engine.SessionClosed:
		return &Record_SessionClosed{&RecordSessionClosed{Token: e.Token[:]}}
	}
	return nil
}

func (d *decoder) codeIssued(r *RecordCodeIssued) *engine.CodeIssued {
	e := &engine.CodeIssued{
		Email: d.email(r.Email), At: d.instant(r.At, r.AtNanos), Steady: d.steady(r.Steady), Mailed: r.Mailed,
	}
	if len(r.Sealed) > 0 {
		e.Sealed = engine.CodeSeal(d.digest(r.Sealed))
	}
	return e
}

func codeRecord(c *engine.CodeState) *SnapshotCode {
	r := &SnapshotCode{Email: emailRecord(c.Email), Seal: c.Seal[:], Until: int64(c.Until), Tries: int64(c.Tries)}
	r.Expires, r.ExpiresNanos = instant(c.Expires)
	return r
}

func (d *decoder) code(r *SnapshotCode) engine.CodeState {
	return engine.CodeState{
		Email: d.email(r.Email), Seal: engine.CodeSeal(d.digest(r.Seal)), Expires: d.instant(r.Expires, r.ExpiresNanos),
		Until: d.steady(r.Until), Tries: d.count(r.Tries),
	}
}

func (d *decoder) codeFailed(r *RecordCodeFailed) *engine.CodeFailed {
	return &engine.CodeFailed{Email: d.email(r.Email), At: d.instant(r.At, r.AtNanos), Steady: d.steady(r.Steady)}
}

func codeRefusedRecord(e *codeRefused) *RecordCodeRefused {
	r := &RecordCodeRefused{Email: emailRecord(e.Email)}
	r.At, r.AtNanos = instant(e.At)
	return r
}

func (d *decoder) codeRefused(r *RecordCodeRefused) *codeRefused {
	return &codeRefused{Email: d.email(r.Email), At: d.instant(r.At, r.AtNanos)}
}

func (d *decoder) sessionOpened(r *RecordSessionOpened) *engine.SessionOpened {
	return &engine.SessionOpened{
		Account: r.Account, New: r.New, Email: d.email(r.Email), Token: d.digest(r.Token),
		Expires: d.instant(r.Expires, r.ExpiresNanos), At: d.instant(r.At, r.AtNanos), Steady: d.steady(r.Steady),
	}
}

func announcedRecord(t engine.Transition) *RecordAnnounced {
	r := &RecordAnnounced{By: t.By}
	r.At, r.AtNanos = instant(t.AnnouncedAt)
	r.Required, r.RequiredNanos = instant(t.RequiredAt)
	return r
}

// transition is that of an announcement; none when there is no record.
func (d *decoder) transition(r *RecordAnnounced) engine.Transition {
	if r == nil {
		return engine.Transition{}
	}
	return engine.Transition{
		AnnouncedAt: d.instant(r.At, r.AtNanos), RequiredAt: d.instant(r.Required, r.RequiredNanos), By: d.text(r.By),
	}
}

func announcementWithdrawnRecord(e *engine.AnnouncementWithdrawn) *RecordAnnouncementWithdrawn {
	r := &RecordAnnouncementWithdrawn{By: e.By}
	r.At, r.AtNanos = instant(e.At)
	return r
}

func (d *decoder) announcementWithdrawn(r *RecordAnnouncementWithdrawn) *engine.AnnouncementWithdrawn {
	return &engine.AnnouncementWithdrawn{At: d.instant(r.At, r.AtNanos), By: d.text(r.By)}
}
