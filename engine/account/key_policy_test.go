package account

import (
	"errors"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

func TestK7_NoticeIsFourteenDays(t *testing.T) {
	now := noon.Add(300 * time.Millisecond)
	tests := []struct {
		name string
		at   time.Time
		ok   bool
	}{
		{"14 days after the second that began", noon.Add(KeyNoticeMin), false}, // 0.3 s short
		{"14 days and a second", noon.Add(KeyNoticeMin + time.Second), true},
		{"the fraction is cut off", noon.Add(KeyNoticeMin + 999*time.Millisecond), false},
		{"a year", noon.AddDate(1, 0, 0), true},
		{"now", now, false},
		{"in the past", noon.AddDate(-1, 0, 0), false},
		{"never", time.Time{}, false},
	}
	for _, tt := range tests {
		event, err := KeyPolicy{}.Announce(tt.at, now, "ana")
		if (err == nil) != tt.ok {
			t.Errorf("%s: %+v, %v", tt.name, event, err)
			continue
		}
		if err != nil {
			var refusal *engine.Error
			if !errors.As(err, &refusal) || refusal.Code != engine.CodeInvalidParameters || event != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if event.AnnouncedAt != noon.UTC() || !event.RequiredAt.Equal(tt.at) || event.By != "ana" || event.RequiredAt.Sub(now) < KeyNoticeMin {
			t.Errorf("%s: %+v", tt.name, event)
		}
	}
	if event, err := (KeyPolicy{}).Announce(noon.Add(KeyNoticeMin), noon, "ana"); err != nil {
		t.Errorf("exactly 14 days: %v, %v", event, err)
	}
}

func TestK7_StatesOfTheKeyPolicy(t *testing.T) {
	required := noon.Add(KeyNoticeMin)
	event, err := KeyPolicy{}.Announce(required.In(engine.Location()), noon, "ana")
	must(t, err)
	none, announced := KeyPolicy{}, event.KeyPolicy
	for _, tt := range []struct {
		name              string
		transition        KeyPolicy
		now               time.Time
		pending, required bool
	}{
		{"nothing announced", none, noon, false, false},
		{"announced", announced, noon, true, false},
		{"the instant before", announced, required.Add(-1), true, false},
		{"the instant", announced, required, false, true},
		{"later", announced, required.AddDate(1, 0, 0), false, true},
	} {
		if got := tt.transition.Pending(tt.now); got != tt.pending {
			t.Errorf("%s: pending %t", tt.name, got)
		}
		if got := tt.transition.Required(tt.now); got != tt.required {
			t.Errorf("%s: required %t", tt.name, got)
		}
		if withdrawn, err := tt.transition.Withdraw(tt.now, "ana"); (err == nil) != tt.pending || (withdrawn != nil) != tt.pending {
			t.Errorf("%s: withdrawn %v, %v", tt.name, withdrawn, err)
		}
		again, err := tt.transition.Announce(tt.now.Add(KeyNoticeMin+time.Second), tt.now, "eva")
		if (err == nil) == tt.required {
			t.Errorf("%s: announced again %v, %v", tt.name, again, err)
		}
	}
}
