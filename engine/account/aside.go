package account

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// Aside is what an idle account knows beyond its State: what this process has spent of the leases, and what it will say of its keys
// with the next lease. Who puts an account aside and takes it up again in the same process keeps both; after a restart the State
// alone counts, and Resume.
type Aside struct {
	Days  []AsideDay    // of days that something was leased for
	Fence time.Duration // steady
	Uses  []KeyUse      // of keys used since the last lease
}

// AsideDay is what was spent of what is leased for a day.
type AsideDay struct {
	Day      engine.Date
	Spent    int
	Refunded int // of Spent
}

// PutAside is what the process must keep of an account that is Idle, beside its State.
func (a *Account) PutAside() Aside {
	aside := Aside{Fence: a.fence, Uses: a.uses()}
	for _, count := range a.days.counts {
		aside.Days = append(aside.Days, AsideDay{count.day, count.spent, count.refunded})
	}
	return aside
}

// TakeUp makes a restored account the one that was put aside.
func (a *Account) TakeUp(aside Aside) {
	a.fence = aside.Fence
	for _, day := range aside.Days {
		if count := a.days.find(day.Day); count != nil {
			count.spent, count.refunded = day.Spent, day.Refunded
		}
	}
	for _, use := range aside.Uses {
		if key := a.key(use.KeyID); key != nil {
			key.used = use.At
		}
	}
}

// uses are the keys used since the log last heard of them.
func (a *Account) uses() []KeyUse {
	var uses []KeyUse
	for i := range a.keys {
		if key := &a.keys[i]; key.used.After(key.record.LastUsed) {
			uses = append(uses, KeyUse{key.record.ID, key.used})
		}
	}
	return uses
}
