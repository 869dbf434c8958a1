package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// How much there is to start with, and to take in.
const (
	startRecords  = 1_000_000
	startAccounts = 100_000
	memoryFew     = 100
	memoryMany    = 100_000
	intakeLines   = 300_000
	// startsMax is how many starts a figure is the median of, at most.
	startsMax = 7
)

// measureF8 times starts: from the moment at which the process is begun until a question is answered 200. Each is of a node that was
// killed, so that all of them find the same directory.
func measureF8(ctx context.Context, l *lab, g *goal) error {
	records, err := l.longLog(ctx)
	if err != nil {
		return err
	}
	accounts, err := newFixture(filepath.Join(l.dir, "start-accounts"), fixtureSize{institutions: 44, currencies: 8, accounts: startAccounts, days: 1})
	if err != nil {
		return err
	}
	history, err := newFixture(filepath.Join(l.dir, "start-history"), fixtureSize{institutions: 50, currencies: 5, accounts: 1, days: 365})
	if err != nil {
		return err
	}
	for _, one := range []struct {
		name string
		made *fixture
		want float64 // ms
	}{
		{"after 1,000,000 records in the log", records, 1000},
		{"100,000 accounts, from a snapshot", accounts, 300},
		{"a year of 50 institutions and 5 currencies, from a snapshot", history, 300},
	} {
		m, err := l.starts(ctx, one.name, one.made)
		if err != nil {
			return err
		}
		g.Measures = append(g.Measures, m.bound(one.want, false, "every byte is checked before it counts, on one core"))
	}
	return nil
}

// starts starts a node again and again.
func (l *lab) starts(ctx context.Context, name string, made *fixture) (measure, error) {
	m := measure{Name: name, Unit: "ms"}
	first := question{path: "/v1/rates/best?currency=USD&operation=buy&limit=1"}
	for range min(l.options.Rounds, startsMax) {
		l.progress.next()
		node := newNode(l.tasard, made)
		_, took, err := node.startTimed(ctx, serverCore, first.request(""))
		if err != nil {
			return measure{}, err
		}
		node.kill()
		m.Rounds = append(m.Rounds, float64(took.Microseconds())/1000)
	}
	m.Value = median(m.Rounds)
	return m, nil
}

// longLog is what a node leaves that took so many observations in, each on its own, and was killed: under its own policy, with snapshots
// on the way and records behind the last one.
func (l *lab) longLog(ctx context.Context) (*fixture, error) {
	made, err := newFixture(filepath.Join(l.dir, "start-records"), fixtureSize{institutions: 44, currencies: 8, accounts: 1, days: 1})
	if err != nil {
		return nil, err
	}
	market := newBooths(engine.DefaultCatalogue(), fixtureSize{institutions: 44, currencies: 8})
	file := filepath.Join(l.dir, "records.csv")
	all := saying{market: market, lines: startRecords, ago: func(line int) time.Duration { return time.Duration(startRecords-line) * time.Second / 2 }}
	if err := all.write(file); err != nil {
		return nil, err
	}
	node := newNode(l.tasard, made, "--import", file)
	if _, err := node.start(ctx, serverCore); err != nil {
		return nil, err
	}
	defer node.kill()
	waiting, cancel := context.WithTimeout(ctx, 5*startMax)
	defer cancel()
	_, err = node.process.line(waiting, importedText)
	return made, errors.Join(err, os.Remove(file))
}

// saying is a file of observations that is to be written.
type saying struct {
	market []booth
	lines  int
	// ago is how long ago a line was observed.
	ago func(line int) time.Duration
	// list is the source that tells all of it; "" = each institution for itself.
	list string
}

func (s *saying) write(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write observations: %w", err)
	}
	now, random := time.Now().Truncate(time.Second), rand.New(rand.NewPCG(fixtureSeed, 8))
	text := []byte(observationHeader)
	for line := 0; line < s.lines && err == nil; {
		for i := range s.market {
			b := &s.market[i]
			b.drift(random)
			text = b.appendLine(text, cmp.Or(s.list, b.source), now.Add(-s.ago(line)))
			line++
		}
		_, err = file.Write(text)
		text = text[:0]
	}
	return errors.Join(err, file.Close())
}

// measureF9 asks once in the name of each of many accounts, starts the node again and compares what its heap holds with that of a node
// that has few. Awake accounts are more: each has an actor for some minutes.
func measureF9(ctx context.Context, l *lab, g *goal) error {
	var after, awake [2]float64
	for i, accounts := range []int{memoryFew, memoryMany} {
		l.progress.next()
		made, err := newFixture(filepath.Join(l.dir, fmt.Sprintf("memory-%d", accounts)),
			fixtureSize{institutions: 44, currencies: 8, accounts: accounts, days: 1})
		if err != nil {
			return err
		}
		if awake[i], after[i], err = l.remembered(ctx, made); err != nil {
			return err
		}
	}
	each := func(bytes [2]float64) float64 { return (bytes[1] - bytes[0]) / (memoryMany - memoryFew) }
	g.Measures = []measure{
		measure{Name: "heap of an account that asked today, after a start", Unit: "B", Value: each(after)}.bound(1024, false, ""),
		measure{Name: "heap of an account that asked just now, with its actor", Unit: "B", Value: each(awake)}.free(),
	}
	return nil
}

// remembered is the heap of a node all of whose accounts have just asked, and again after a crash.
func (l *lab) remembered(ctx context.Context, made *fixture) (awake, after float64, err error) {
	node := newNode(l.tasard, made)
	found, err := node.start(ctx, serverCore)
	if err != nil {
		return 0, 0, err
	}
	defer func() { node.kill() }()
	if err := l.everybody(ctx, side{target: found, keys: made.keys, questions: mixes(benchInstitution)[mixBest]}); err != nil {
		return 0, 0, err
	}
	if awake, err = node.heap(ctx); err != nil {
		return 0, 0, err
	}
	node.kill()
	if _, err = node.start(ctx, serverCore); err != nil {
		return 0, 0, err
	}
	after, err = node.heap(ctx)
	return awake, after, err
}

// roll asks the same in the name of one account after the other.
type roll struct {
	keys     []string
	question question
	called   int
}

func (r *roll) next(dst []byte, _ *rand.Rand) []byte {
	key := r.keys[r.called%len(r.keys)]
	r.called++
	return append(dst, r.question.request(key)...)
}

// heap is what a node's heap holds after a collection.
func (n *nodeContender) heap(ctx context.Context) (float64, error) {
	if _, err := n.ask(ctx, "/debug/pprof/heap?gc=1", startMax); err != nil {
		return 0, fmt.Errorf("ask the node for its heap: %w", err)
	}
	text, err := n.ask(ctx, "/metrics", answerMax)
	if err != nil {
		return 0, fmt.Errorf("ask the node for its heap: %w", err)
	}
	bytes, err := metric(text, "go_memstats_heap_alloc_bytes")
	return float64(bytes), err
}

// measureF10 times tasard import of refreshes of a whole market: reading, judging and the disk. A list says of all institutions what
// they pay, as an aggregator does; otherwise each of them says its own.
func measureF10(ctx context.Context, l *lab, g *goal) error {
	list, err := l.intake(ctx, "intake-list", "list")
	if err != nil {
		return err
	}
	list.Name = "observations a second, in lists of all institutions"
	each, err := l.intake(ctx, "intake-each", "")
	if err != nil {
		return err
	}
	each.Name = "observations a second, each institution for itself"
	g.Measures = []measure{list.bound(50_000, true, "one core reads, judges, writes and waits for the disk"), each.free()}
	return nil
}

// intake takes the same file into a new directory again and again.
func (l *lab) intake(ctx context.Context, name, list string) (measure, error) {
	market := newBooths(engine.DefaultCatalogue(), standardSize())
	// A source says all that it has at once.
	slices.SortStableFunc(market, func(a, b booth) int { return strings.Compare(a.source, b.source) })
	refreshes := intakeLines/len(market) + 1
	all := saying{market: market, lines: refreshes * len(market), list: list, ago: func(line int) time.Duration {
		return time.Duration(refreshes-line/len(market)) * time.Minute
	}}
	file := filepath.Join(l.dir, name+".csv")
	if err := all.write(file); err != nil {
		return measure{}, err
	}
	m := measure{Unit: "/s"}
	for round := range min(l.options.Rounds, startsMax) {
		l.progress.next()
		began := time.Now()
		p, err := spawn(&command{name: "tasard import", program: program{path: l.tasard}, args: []string{
			"import", "--data", filepath.Join(l.dir, fmt.Sprintf("%s-%d", name, round)), file,
		}}, serverCore)
		if err != nil {
			return measure{}, err
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			p.kill()
			return measure{}, ctx.Err()
		}
		if p.ended != nil {
			return measure{}, p.death(p.ended)
		}
		m.Rounds = append(m.Rounds, float64(all.lines)/time.Since(began).Seconds())
	}
	m.Value = median(m.Rounds)
	return m, os.Remove(file)
}
