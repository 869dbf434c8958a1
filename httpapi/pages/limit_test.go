package pages

import (
	"errors"
	"fmt"
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

// TestLimiter_ManyAddresses checks that the table is bounded, and that a busy address among many is refused.
func TestLimiter_ManyAddresses(t *testing.T) {
	l := newLimiter(PerMinuteDefault)
	now := Noon()
	me, admitted := netip.MustParseAddr("192.0.2.1"), 0
	for i := range 50_000 {
		if _, ok := l.admit(netip.AddrFrom4([4]byte{198, byte(i >> 16), byte(i >> 8), byte(i)}), now); !ok {
			t.Fatal("a client that asks for the first time is refused")
		}
		if i%10 == 0 {
			if _, ok := l.admit(me, now); ok {
				admitted++
			}
		}
	}
	if rows := len(l.fullAt.young) + len(l.fullAt.old); rows > 2*limitAddressesMax {
		t.Errorf("%d addresses are remembered", rows)
	}
	if admitted > limitBurst {
		t.Errorf("%d requests of one address at once", admitted)
	}
}

func TestCache_Bounded(t *testing.T) {
	k := newPageCache()
	now := Noon()
	for i := range 10 * cachedPagesMax {
		_, err := k.getOrRender(cacheKey{page: "/", query: fmt.Sprint(i)}, now, func() (*rendered, time.Time, error) {
			return &rendered{body: make([]byte, 100)}, now.Add(time.Second), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(k.pages.young)+len(k.pages.old) > 2*cachedPagesMax {
			t.Fatalf("%d pages are kept", len(k.pages.young)+len(k.pages.old))
		}
	}
	for i := range 100 {
		_, _ = k.getOrRender(cacheKey{page: "/big", query: fmt.Sprint(i)}, now, func() (*rendered, time.Time, error) {
			return &rendered{body: make([]byte, cachedBytesMax/4)}, now.Add(time.Second), nil
		})
		if len(k.pages.young) > 5 {
			t.Fatalf("%d large pages are kept in one generation", len(k.pages.young))
		}
	}
}

func TestCache_UntilAndBack(t *testing.T) {
	k := newPageCache()
	now := Noon()
	made := 0
	take := func(at time.Time) {
		_, _ = k.getOrRender(cacheKey{page: "/"}, at, func() (*rendered, time.Time, error) {
			made++
			return &rendered{}, at.Add(time.Second), nil
		})
	}
	for _, tt := range []struct {
		at   time.Duration
		want int
	}{{0, 1}, {999 * time.Millisecond, 1}, {time.Second, 2}, {1500 * time.Millisecond, 2}, {-time.Hour, 3}} {
		if take(now.Add(tt.at)); made != tt.want {
			t.Errorf("after %v: made %d times, want %d", tt.at, made, tt.want)
		}
	}
	failed := cacheKey{page: "/fails"}
	for range 2 {
		if _, err := k.getOrRender(failed, now, func() (*rendered, time.Time, error) { return nil, now, errors.New("planted") }); err == nil {
			t.Error("a page that could not be made is answered")
		}
	}
	if k.pages.young[failed] != nil || k.pages.old[failed] != nil {
		t.Error("a page that could not be made keeps its place")
	}
}
