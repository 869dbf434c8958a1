package collectors

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// crashes is one town in which a node dies several times around a slot, at any instant, also between two currencies of one answer.
type crashes struct {
	random *rand.Rand
	slot   time.Time
	deaf   bool // planted: slots do not count in the store
	amnesy bool // planted: a node that starts does not ask what is done
	lives  int
	cut    int // lives that ended within an intake
}

// live is one life of a node: it ends at an instant, or in the middle of an intake, whatever comes first.
func (c *crashes) live(w *world, definitions []*source.Definition, until time.Time) {
	config := w.config(definitions...)
	config.Spread, config.CatchUpSpread = 2*time.Second, 300*time.Millisecond
	config.Random = rand.New(rand.NewPCG(c.random.Uint64(), 0))
	if c.amnesy {
		config.Done = nil
	}
	life := w.store.life()
	life.parts = c.random.IntN(9) - 1 // -1: not in an intake
	c.lives++
	died := make(chan struct{})
	life.death = func() { close(died) }
	config.Sink = life
	n := w.run(config)
	select {
	case <-died:
		c.cut++
	case <-time.NewTimer(until.Sub(w.now())).C:
		w.store.mu.Lock()
		life.dead, life.death = true, func() {}
		w.store.mu.Unlock()
	}
	n.stop(w)
}

// run lets a node die and start again around the slot, and then live for twenty minutes.
func (c *crashes) run(t *testing.T) (doubled []published, missing int) {
	inWorld(t, c.slot.Add(-30*time.Second), func(t *testing.T, w *world) {
		var definitions []*source.Definition
		for _, id := range []string{"a", "b", "c", "d"} {
			definitions = append(definitions, twoPages(id, "popular"))
			random := rand.New(rand.NewPCG(c.random.Uint64(), 1))
			w.sites[id] = func(ctx context.Context, page int) (string, error) {
				pause(ctx, time.Duration(random.Int64N(int64(300*time.Millisecond))))
				return []string{oneQuote, "popular EUR 68.10 70.30"}[page], ctx.Err()
			}
		}
		w.store.deaf = c.deaf
		w.store.know(Daily().Last(w.now()), definitions...)
		for w.now().Before(c.slot.Add(5 * time.Second)) {
			c.live(w, definitions, c.slot.Add(time.Duration(c.random.Int64N(int64(10*time.Second))-int64(5*time.Second))))
			w.pass(w.now().Add(time.Duration(c.random.Int64N(int64(500 * time.Millisecond)))))
		}
		last := w.config(definitions...)
		if c.amnesy {
			last.Done = nil
		}
		n := w.run(last)
		w.pass(c.slot.Add(20 * time.Minute))
		n.stop(w)
		doubled = w.store.doubled()
		for _, d := range definitions {
			count := 0
			for _, p := range w.store.of(d.ID) {
				if p.slot.Equal(c.slot) {
					count++
				} else {
					doubled = append(doubled, p) // the slot before, which was done
				}
			}
			missing += max(2-count, 0)
		}
	})
	return doubled, missing
}

// TestD5_CrashAroundASlot kills a node at random instants of 08:00:00 ± 5 s, a thousand times: one publication of each quote for
// the slot.
func TestD5_CrashAroundASlot(t *testing.T) {
	seed := rand.Uint64() //nolint:forbidigo // printed below
	t.Logf("seed %d", seed)
	c := &crashes{random: rand.New(rand.NewPCG(seed, 0)), slot: santoDomingo(2026, 9, 14, 8, 0, 0)}
	for round := range 1000 {
		if doubled, missing := c.run(t); doubled != nil || missing > 0 {
			t.Fatalf("round %d of seed %d: doubled %v, missing %d", round, seed, doubled, missing)
		}
	}
	t.Logf("%d lives, %d of them cut short within an intake", c.lives, c.cut)
}

// TestD5_ControlCrash takes away what keeps a slot from being done twice, one by one: that must be seen.
func TestD5_ControlCrash(t *testing.T) {
	for name, planted := range map[string]*crashes{
		"slots do not count":                 {deaf: true},
		"nor does a start ask what was done": {deaf: true, amnesy: true},
	} {
		planted.random, planted.slot = rand.New(rand.NewPCG(7, 0)), santoDomingo(2026, 9, 14, 8, 0, 0)
		found := 0
		for range 30 {
			doubled, _ := planted.run(t)
			found += len(doubled)
		}
		if found == 0 {
			t.Errorf("%s: nothing was published twice in 30 rounds; this test is blind", name)
		}
		t.Logf("%s: %d publications too many in 30 rounds", name, found)
	}
}
