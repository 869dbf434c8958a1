package rendered

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestCache(t *testing.T) {
	start := time.Date(2026, time.January, 15, 12, 0, 0, 0, time.UTC)
	const entriesMax, bytesMax = 3, 100
	c := NewCache[string, int](entriesMax, bytesMax)
	builds := 0
	get := func(key string, after time.Duration, bytes int) (last int) {
		t.Helper()
		last = -1
		value, err := c.Get(key, start.Add(after), func(was int) (Kept[int], error) {
			last = was
			builds++
			return Kept[int]{builds, start.Add(after + time.Minute), bytes}, nil
		})
		if err != nil || value == 0 || len(c.entries) > entriesMax || c.bytes > bytesMax || len(c.entries) != c.byUse.Len() {
			t.Fatalf("%d, %v; %d values of %d bytes", value, err, len(c.entries), c.bytes)
		}
		return last
	}
	const kept = -1
	for i, step := range []struct {
		key   string
		after time.Duration
		bytes int
		want  int // the value that build gets, or kept
	}{
		{"a", 0, 10, 0}, {"a", time.Minute - 1, 10, kept},
		{"a", time.Minute, 10, 1},      // it has expired
		{"a", 59 * time.Second, 10, 2}, // the clock was set back
		{"b", 0, 10, 0}, {"c", 0, 10, 0}, {"a", 59 * time.Second, 0, kept},
		{"d", 0, 10, 0}, // drops b, which was not used for the longest time
		{"a", 59 * time.Second, 0, kept}, {"c", 0, 0, kept}, {"d", 0, 0, kept}, {"b", 0, 10, 0},
		{"c", 0, 90, kept}, {"c", time.Minute, 90, 5}, // drops d, then it fits
		{"b", 0, 0, kept},
		{"e", 0, 101, 0}, // larger than the cache: it drops all, itself too
		{"e", 0, 20, 0}, {"b", 0, 20, 0},
	} {
		if last := get(step.key, step.after, step.bytes); last != step.want {
			t.Fatalf("step %d: build got %d, want %d", i, last, step.want)
		}
	}
	failure := errors.New("no rates")
	if _, err := c.Get("e", start.Add(time.Hour), func(int) (Kept[int], error) { return Kept[int]{}, failure }); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	if last := get("e", 0, 20); last != 0 {
		t.Fatalf("after an error build got %d", last)
	}
}

// TestCache_Concurrent: requests at the same time make a value once.
func TestCache_Concurrent(t *testing.T) {
	c := NewCache[int, int](2, 10)
	var builds atomic.Int32
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			_, _ = c.Get(1, time.Unix(0, 0), func(int) (Kept[int], error) {
				builds.Add(1)
				return Kept[int]{1, time.Unix(1, 0), 1}, nil
			})
		})
	}
	group.Wait()
	if n := builds.Load(); n != 1 {
		t.Fatalf("made %d times", n)
	}
}
