package actors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tasard/tasard/engine"
)

const (
	boardReaders = 5
	boardReads   = 16
	boardWrites  = 10
)

// boardObservation is what a reader found, or a writer published: a number for each publication. Unknown: no answer.
type boardObservation struct {
	write   bool
	number  int
	unknown bool
}

// boardModel is a rate as callers may see it: one register, whichever actor is asked for it.
func boardModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{0} },
		Step: func(state, input, output any) []any {
			s, in, out := state.(int), input.(boardObservation), output.(boardObservation)
			switch {
			case in.write && out.unknown:
				return []any{s, in.number}
			case in.write:
				return []any{in.number}
			case out.unknown || out.number == s:
				return []any{s}
			}
			return nil
		},
	}
	return model.ToModel()
}

// sides of the publications: the value tells the number. None jumps.
func sideOf(number int) string { return fmt.Sprintf("59.%06d", number) }

func numberOf(side string) int {
	number := -1
	_, _ = fmt.Sscanf(side, "59.%06d", &number) // -1: not of this test
	return number
}

// boardHistory has one source publish while readers ask in all ways, with a crash in the middle or without.
type boardHistory struct {
	*node
	recorder
	crashed atomic.Bool
	number  int
}

func (h *boardHistory) publish(until int64) {
	h.number++
	h.clock.advance(time.Second)
	in, call := boardObservation{write: true, number: h.number}, h.ticks.Add(1)
	_, err := h.Observe([]engine.Refresh{saying("bhd-site", h.clock.Read(), "USD", "58.00", sideOf(h.number), "bhd")})
	if err != nil || h.crashed.Load() {
		h.note(0, in, boardObservation{unknown: true}, call, until)
		return
	}
	h.note(0, in, in, call, h.ticks.Add(1))
}

// read asks in one of the ways that show the rate: two about one currency, two about all.
func (h *boardHistory) read(who int, random *rand.Rand) {
	one, call := engine.PageRequest{Limit: 1}, h.ticks.Add(1)
	var page *engine.Page[*engine.Rate]
	var err error
	switch random.IntN(4) {
	case 0:
		page, err = h.Ranking(usdRanking())
	case 1:
		page, err = h.Rates(engine.RatesQuery{Filter: engine.Filter{Currency: "USD"}, PageRequest: one})
	case 2:
		page, err = h.Rates(engine.RatesQuery{Filter: engine.Filter{Institution: "bhd"}, PageRequest: one})
	default:
		page, err = h.Rates(engine.RatesQuery{PageRequest: one})
	}
	if err != nil || len(page.Items) == 0 || h.crashed.Load() {
		return // nothing was seen
	}
	h.note(who, boardObservation{}, boardObservation{number: numberOf(page.Items[0].Sell.String())}, call, h.ticks.Add(1))
}

func (h *boardHistory) phase(seed uint64, until int64, crash func()) {
	var all sync.WaitGroup
	all.Go(func() {
		random := rand.New(rand.NewPCG(seed, boardReaders))
		for i := range boardWrites {
			if crash != nil && i == boardWrites/2 {
				crash()
			}
			if h.publish(until); h.crashed.Load() {
				return
			}
			h.read(0, random) // the publisher sees it; on one processor all others may read before or after it
		}
	})
	for who := range boardReaders {
		random := rand.New(rand.NewPCG(seed, uint64(who)))
		all.Go(func() {
			for range boardReads {
				h.read(who+1, random)
			}
		})
	}
	all.Wait()
}

func runBoardHistory(t *testing.T, seed uint64, crash, lazy bool) []porcupine.Operation {
	h := &boardHistory{node: startNode(t, Config{LimitsOff: true})}
	observe(t, h.System, saying("bhd-site", h.clock.Read(), "USD", "58.00", sideOf(0), "bhd"))
	h.journal.setLazy(lazy)
	const infinity = int64(math.MaxInt64 / 2)
	if !crash {
		h.phase(seed, infinity, nil)
		return h.recorder.all
	}
	var image *memoryJournal
	h.phase(seed, infinity/2, func() {
		h.crashed.Store(true)
		image = h.journal.crashed()
	})
	h.stop()
	h.boot(image)
	h.crashed.Store(false)
	h.ticks.Store(infinity/2 + 1)
	h.phase(seed+1, infinity, nil)
	return h.recorder.all
}

func checkBoards(t *testing.T, count int) {
	t.Helper()
	reads, unknown := 0, 0
	for seed := range uint64(count) {
		all := runBoardHistory(t, seed, seed%2 == 0, false)
		for _, op := range all {
			switch out := op.Output.(boardObservation); {
			case out.unknown:
				unknown++
			case !out.write:
				reads++
			}
		}
		if got := porcupine.CheckOperationsTimeout(boardModel(), all, time.Minute); got != porcupine.Ok {
			t.Fatalf("history %d of the board is %s:\n%+v", seed, got, all)
		}
	}
	t.Logf("FIGURE %d histories of publications, half of them with a crash: %d reads, %d publications without an answer", count, reads, unknown)
	if reads == 0 || unknown == 0 {
		t.Error("nothing was read, or no publication was cut off")
	}
}

// Once a publication is acknowledged no caller sees an older rate, whether of the currency or of all. Nor does a caller
// see an older rate after another has seen a newer one.
func TestQ1_PublishedRatesAreLinearizable(t *testing.T) { checkBoards(t, 20) }

// A journal that acknowledges before it keeps shows an older rate after a crash.
func TestQ1_Control_OlderRateIsIllegal(t *testing.T) {
	for seed := range uint64(histories) {
		if porcupine.CheckOperationsTimeout(boardModel(), runBoardHistory(t, seed, true, true), time.Minute) == porcupine.Illegal {
			return
		}
	}
	t.Error("a journal that acknowledges before it keeps is not caught")
}
