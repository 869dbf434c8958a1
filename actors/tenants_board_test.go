package actors

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tasard/tasard/engine"
)

// Shape of a history of the board.
const (
	boardReaders = 5
	boardReads   = 16
	boardWrites  = 10
)

// saw is what a reader found, or a writer published: a number for each publication. Unknown: no answer.
type saw struct {
	write   bool
	number  int
	unknown bool
}

// boardModel is a rate as callers may see it: one register, whoever is asked for it.
func boardModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{0} },
		Step: func(state, input, output any) []any {
			s, in, out := state.(int), input.(saw), output.(saw)
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
	_, _ = fmt.Sscanf(side, "59.%06d", &number) // -1: it is none of ours
	return number
}

// boardPaths are the questions that show the rate: two to the currency, two to the directory, and one behind a conversion.
func boardPaths() []string {
	return []string{
		bestDollars, "/v1/rates?currency=USD", "/v1/rates?institution=bhd", "/v1/rates", "/v1/convert?currency=USD&operation=buy&amount=1.00",
	}
}

// sold is the selling side of the first item of an answer.
func sold(got *reply) (string, bool) {
	var read struct{ Data []struct{ Sell, Rate string } }
	if got.status != http.StatusOK || json.Unmarshal([]byte(got.body), &read) != nil || len(read.Data) == 0 {
		return "", false
	}
	if read.Data[0].Rate != "" {
		return read.Data[0].Rate, true
	}
	return read.Data[0].Sell, true
}

// boardHistory has one source publish while readers ask in all ways, with a crash in the middle or without. The service is the node's,
// or the planted one.
type boardHistory struct {
	*node
	ticks   atomic.Int64
	crashed atomic.Bool
	mu      sync.Mutex
	all     []porcupine.Operation
	number  int
}

func (h *boardHistory) note(who int, in, out saw, call, back int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, porcupine.Operation{ClientId: who, Input: in, Output: out, Call: call, Return: back})
}

// publish is the next publication.
func (h *boardHistory) publish(until int64) {
	h.number++
	h.clock.advance(time.Second)
	in, call := saw{write: true, number: h.number}, h.ticks.Add(1)
	_, err := h.Observe([]engine.Refresh{saying("bhd-site", h.clock.read(), "USD", "58.00", sideOf(h.number), "bhd")})
	if err != nil || h.crashed.Load() {
		h.note(0, in, saw{unknown: true}, call, until)
		return
	}
	h.note(0, in, in, call, h.ticks.Add(1))
}

// read asks in one of the ways.
func (h *boardHistory) read(f *front, who int, random *rand.Rand) {
	paths := boardPaths()
	call := h.ticks.Add(1)
	side, found := sold(f.ask(http.MethodGet, paths[random.IntN(len(paths))], "", ""))
	if !found || h.crashed.Load() {
		return // nobody saw anything
	}
	h.note(who, saw{}, saw{number: numberOf(side)}, call, h.ticks.Add(1))
}

// phase lets everybody do their part.
func (h *boardHistory) phase(seed uint64, f *front, until int64, crash func()) {
	var all sync.WaitGroup
	all.Go(func() {
		for i := range boardWrites {
			if crash != nil && i == boardWrites/2 {
				crash()
			}
			if h.publish(until); h.crashed.Load() {
				return
			}
		}
	})
	for who := range boardReaders {
		random := rand.New(rand.NewPCG(seed, uint64(who)))
		all.Go(func() {
			for range boardReads {
				h.read(f, who+1, random)
			}
		})
	}
	all.Wait()
}

func playBoard(t *testing.T, seed uint64, crash bool, plant func(engine.Service) engine.Service) []porcupine.Operation {
	h := &boardHistory{node: startNode(t, Config{LimitsOff: true})}
	observe(t, h.System, saying("bhd-site", h.clock.read(), "USD", "58.00", sideOf(0), "bhd"))
	const infinity = int64(math.MaxInt64 / 2)
	f := openFront(h.node, h.System, plant(h.System))
	if !crash {
		h.phase(seed, f, infinity, nil)
		f.shut()
		return h.all
	}
	var image *memoryJournal
	h.phase(seed, f, infinity/2, func() {
		h.crashed.Store(true)
		image = h.journal.crashed()
	})
	f.shut()
	h.stop()
	h.boot(image)
	h.crashed.Store(false)
	h.ticks.Store(infinity/2 + 1)
	f = openFront(h.node, h.System, plant(h.System))
	h.phase(seed+1, f, infinity, nil)
	f.shut()
	return h.all
}

func honest(s engine.Service) engine.Service { return s }

// checkBoards holds so many histories of a board against the register.
func checkBoards(t *testing.T, count int) {
	t.Helper()
	reads, unknown := 0, 0
	for seed := range uint64(count) {
		all := playBoard(t, seed, seed%2 == 0, honest)
		for _, op := range all {
			switch out := op.Output.(saw); {
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
		t.Error("nobody read, or no publication was cut off")
	}
}

// Once a publication is acknowledged nobody sees an older rate, whoever is asked: the currency or the directory. Nor does anybody see a
// newer one, and somebody later an older one.
func TestQ1_PublishedRatesAreLinearizable(t *testing.T) { checkBoards(t, 6) }

// forgetfulService is the planted bug: every other answer about all currencies is the one before.
type forgetfulService struct {
	engine.Service
	mu    sync.Mutex
	pages []*engine.Page[*engine.Rate]
}

// Rates answers what it answered before, now and then.
func (s *forgetfulService) Rates(q engine.RatesQuery) (*engine.Page[*engine.Rate], error) {
	page, err := s.Service.Rates(q)
	if err != nil || q.Currency != "" {
		return page, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.pages, page) {
		s.pages = append(s.pages, page)
	}
	return s.pages[max(0, len(s.pages)-2)], nil
}

func TestQ1_Control_OlderRateIsIllegal(t *testing.T) {
	plant := func(s engine.Service) engine.Service { return &forgetfulService{Service: s} }
	for seed := range uint64(histories) {
		if porcupine.CheckOperationsTimeout(boardModel(), playBoard(t, seed, false, plant), time.Minute) == porcupine.Illegal {
			t.Logf("caught in history %d", seed)
			return
		}
	}
	t.Error("a directory that lags behind is not caught")
}
