package pages

import (
	"net/netip"
	"testing"
	"time"
)

// Noon is 12:00 of a Saturday in Santo Domingo.
func Noon() time.Time { return time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC) }

func TestLimiter_BurstThenAsTimeGoes(t *testing.T) {
	l := newLimiter(PerMinuteDefault)
	now := Noon()
	me := netip.MustParseAddr("192.0.2.1")
	for i := range limitBurst {
		if _, ok := l.admit(me, now); !ok {
			t.Fatalf("request %d is refused", i+1)
		}
	}
	wait, ok := l.admit(me, now)
	if ok || wait != time.Minute/PerMinuteDefault {
		t.Errorf("beyond the burst: admitted %v, wait %v", ok, wait)
	}
	if _, ok := l.admit(me, now.Add(wait)); !ok {
		t.Error("the wait was not enough")
	}
	admitted := 0
	for second := range 600 { // 20 requests a second for ten minutes
		for range 20 {
			if _, ok := l.admit(me, now.Add(time.Hour+time.Duration(second)*time.Second)); ok {
				admitted++
			}
		}
	}
	if want := limitBurst + 599*PerMinuteDefault/60; admitted != want {
		t.Errorf("%d in ten minutes, want %d", admitted, want)
	}
}

func TestLimiter_SixByNetwork(t *testing.T) {
	l := newLimiter(60)
	now := Noon()
	spend := func(text string) (admitted int) {
		for range 100 {
			if _, ok := l.admit(netip.MustParseAddr(text), now); ok {
				admitted++
			}
		}
		return admitted
	}
	for _, tt := range []struct {
		address string
		want    int
	}{
		{"2001:db8:0:1::1", 60}, {"2001:db8:0:1:ffff::2", 0}, {"2001:db8:0:2::1", 60}, {"192.0.2.7", 60}, {"::ffff:192.0.2.7", 0}, {"::c000:207", 60},
	} {
		if got := spend(tt.address); got != tt.want {
			t.Errorf("%s: %d admitted, want %d", tt.address, got, tt.want)
		}
	}
}
