package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// writtenDown is a quota as one would write it down: every admission, looked up for each request. Its days are those of a clock
// four hours behind UTC.
type writtenDown struct {
	admitted []int64 // Unix nanoseconds
}

func (r *writtenDown) ask(now time.Time) (ok bool, day, minute int) {
	const dayNanos, behind = int64(24 * time.Hour), int64(4 * time.Hour)
	nanos := now.UnixNano()
	since := func(from int64) int {
		first, _ := slices.BinarySearch(r.admitted, from)
		return len(r.admitted) - first
	}
	day = since((nanos-behind)/dayNanos*dayNanos + behind)
	minute = since(nanos - int64(time.Minute) + 1)
	if day >= 1000 || minute >= 60 {
		return false, 1000 - day, 60 - minute
	}
	r.admitted = append(r.admitted, nanos)
	return true, 1000 - day - 1, 60 - minute - 1
}

// callersOfTheYear are different habits: how many requests in a minute of the day.
func callersOfTheYear(random *rand.Rand) map[string]func(minute int) int {
	return map[string]func(int) int{
		"every minute":  func(int) int { return 1 },
		"office hours":  func(m int) int { return map[bool]int{true: 2}[m%1440 > 720 && m%1440 < 1200] },
		"bursts":        func(m int) int { return map[bool]int{true: 75}[m%97 == 0] },
		"at midnight":   func(m int) int { return map[bool]int{true: 40}[m%1440 > 225 && m%1440 < 255] },
		"now and then":  func(int) int { return max(0, random.IntN(60)-57) },
		"all that fits": func(m int) int { return map[bool]int{true: 61}[m%1440 >= 240 && m%1440 < 270] },
	}
}

// yearOf is one account over some days: what it answered, beside what the reference would have.
type yearOf struct {
	*owner
	model  writtenDown
	skew   time.Duration // planted: how far ahead the account takes the time to be
	fault  string        // the first difference
	asked  int
	denied int
}

// ask is one request, held against the reference. Both windows must end when they do, to the nanosecond.
func (y *yearOf) ask() {
	truth := y.now
	y.now.Wall = truth.Wall.Add(y.skew)
	verdict := y.owner.ask()
	y.now = truth
	ok, day, minute := y.model.ask(truth.Wall)
	y.asked++
	if !ok {
		y.denied++
	}
	const dayNanos, behind = int64(24 * time.Hour), int64(4 * time.Hour)
	midnight := ((truth.Wall.UnixNano()-behind)/dayNanos+1)*dayNanos + behind
	if y.fault == "" && (verdict.Admitted != ok || verdict.Day.Remaining != day || verdict.Minute.Remaining != minute || verdict.Day.Reset.UnixNano() != midnight) {
		y.fault = fmt.Sprintf("%s: %+v, the reference says %t, %d, %d until %d", truth.Wall, verdict, ok, day, minute, midnight)
	}
}

// live lets the days pass minute by minute. At every midnight of Santo Domingo, and in the instant before it, the account is asked.
func (y *yearOf) live(days int, habit func(minute int) int, random *rand.Rand) {
	start := y.now.Wall
	for minute := range days * 24 * 60 {
		y.wait(start.Add(time.Duration(minute) * time.Minute).Sub(y.now.Wall))
		if minute%1440 == 240 {
			y.wait(-time.Nanosecond)
			y.ask()
			y.wait(time.Nanosecond)
			y.ask()
		}
		for range habit(minute) {
			y.ask()
			y.wait(time.Duration(random.IntN(int(400 * time.Millisecond))))
		}
		if y.fault != "" {
			return
		}
	}
}

func newYear(t testing.TB, skew time.Duration) *yearOf {
	return &yearOf{owner: newOwner(t, at("2026-01-01T00:00:00Z")), skew: skew}
}

// Every minute and every midnight of a year, by callers of different habits: an account admits what the reference admits, and shows
// the same remaining until the same instant (Q3). TestFaultsQ3_YearOfAThousandAccounts is the same for a thousand.
func TestL1_L2_YearAgainstReference(t *testing.T) {
	const seed = 20260617
	days := 366
	if raceDetector || testing.Short() {
		days = 30
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for name, habit := range callersOfTheYear(random) {
		t.Run(name, func(t *testing.T) {
			y := newYear(t, 0)
			y.live(days, habit, random)
			if y.fault != "" {
				t.Fatalf("seed %d, %s", seed, y.fault)
			}
			t.Logf("%d days, %d requests, %d refused", days, y.asked, y.denied)
		})
	}
}

// yearSkews are how far a planted clock is ahead.
func yearSkews() []time.Duration {
	return []time.Duration{time.Millisecond, time.Nanosecond, -time.Nanosecond, -1001 * time.Millisecond}
}

// An account whose day begins a millisecond early, or ends more than a second late, is caught within some days.
func TestL1_L2_ControlYearAgainstReference(t *testing.T) {
	for _, skew := range yearSkews() {
		random := rand.New(rand.NewPCG(1, 0))
		y := newYear(t, skew)
		if y.live(3, callersOfTheYear(random)["at midnight"], random); y.fault == "" {
			t.Errorf("a clock that is ahead by %s is not caught", skew)
		}
	}
}
