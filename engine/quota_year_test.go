package engine

import (
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

// Every minute and every midnight of a year, by callers of different habits: an account admits what the reference admits, and shows the
// same remaining (Q3).
func TestL1_L2_YearAgainstReference(t *testing.T) {
	days := 366
	if raceDetector || testing.Short() {
		days = 30
	}
	const seed = 20260617
	random := rand.New(rand.NewPCG(seed, 0))
	for name, habit := range callersOfTheYear(random) {
		t.Run(name, func(t *testing.T) {
			o, model := newOwner(t, at("2026-01-01T00:00:00Z")), &writtenDown{}
			start, asked, refused := o.now.Wall, 0, 0
			ask := func() {
				verdict := o.ask()
				ok, day, minute := model.ask(o.now.Wall)
				asked++
				if !ok {
					refused++
				}
				if verdict.Admitted != ok || verdict.Day.Remaining != day || verdict.Minute.Remaining != minute {
					t.Fatalf("seed %d, %s: %+v, the reference says %t, %d, %d", seed, o.now.Wall, verdict, ok, day, minute)
				}
			}
			for minute := range days * 24 * 60 {
				o.wait(start.Add(time.Duration(minute) * time.Minute).Sub(o.now.Wall))
				if minute%1440 == 240 { // midnight of Santo Domingo, and the instant before it
					o.wait(-time.Nanosecond)
					ask()
					o.wait(time.Nanosecond)
					ask()
				}
				for range habit(minute) {
					ask()
					o.wait(time.Duration(random.IntN(int(400 * time.Millisecond))))
				}
			}
			t.Logf("%d days, %d requests, %d refused", days, asked, refused)
		})
	}
}
