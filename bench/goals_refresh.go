package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tasard/tasard/engine"
)

// measureF12 asks a node at half of what it can answer, first in quiet, then while every source says something new. A node takes one
// file in, at its start, so each round has a node of its own, which reads from a pipe.
func measureF12(ctx context.Context, l *lab, g *goal) error {
	size := standardSize()
	size.accounts = l.options.Accounts
	made, err := newFixture(filepath.Join(l.dir, "refresh"), size)
	if err != nil {
		return err
	}
	rate, err := l.half(ctx, made)
	if err != nil {
		return err
	}
	market := newBooths(engine.DefaultCatalogue(), size)
	random := rand.New(rand.NewPCG(l.options.Seed, 12))
	var pairs []pair
	for round := range l.options.Rounds {
		l.progress.next()
		for i := range market {
			market[i].drift(random)
		}
		p, err := l.refreshed(ctx, made, market, rate, uint64(round))
		if err != nil {
			return err
		}
		pairs = append(pairs, p)
	}
	names := [2]string{"refresh", "quiet"}
	g.Measures = []measure{
		ratioOf("p99 of a round with a refresh, to one without", "ns", pairs, names, p99).bound(1.5, false,
			"decoding and judging share the one core with the readers, and "+limitSync),
		ratioOf("longest answer", "ns", pairs, names, func(s *sample) float64 { return float64(s.latency.Max()) }).free(),
	}
	at := fmt.Sprintf(" at %.0f requests/s", rate)
	l.report.Curves = append(l.report.Curves,
		curveOf(g.ID, fmt.Sprintf("refresh of %d rates", len(market))+at, pairs, func(p *pair) *sample { return &p.a }),
		curveOf(g.ID, "quiet"+at, pairs, func(p *pair) *sample { return &p.b }))
	return nil
}

// half is half of the requests that a node answers in a second.
func (l *lab) half(ctx context.Context, made *fixture) (rate float64, err error) {
	node := newNode(l.tasard, made)
	found, err := node.start(ctx, serverCore)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, node.stop()) }()
	s, err := l.measure(ctx, side{target: found, keys: made.keys, questions: mixes(benchInstitution)[mixBest]}, 0)
	if err != nil {
		return 0, err
	}
	return perSecond(&s) / 2, nil
}

// importedText begins the line that a node logs when a file is taken in.
const importedText = "imported "

// refreshed is one round: b in quiet, a with the refresh.
func (l *lab) refreshed(ctx context.Context, made *fixture, market []booth, rate float64, round uint64) (p pair, err error) {
	pipe := filepath.Join(l.dir, fmt.Sprintf("refresh-%d.csv", round))
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return pair{}, fmt.Errorf("make a pipe: %w", err)
	}
	// Opened for both, it waits for no reader; the node sees its end when it is closed.
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		return pair{}, fmt.Errorf("open the pipe: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(pipe)) }()
	node := newNode(l.tasard, made, "--import", pipe)
	found, err := node.start(ctx, serverCore)
	if err != nil {
		return pair{}, errors.Join(err, writer.Close())
	}
	defer func() { err = errors.Join(err, node.stop()) }()
	s := side{target: found, keys: made.keys, questions: mixes(benchInstitution)[mixBest], rate: rate}
	if p.b, err = l.measure(ctx, s, round); err != nil {
		return pair{}, errors.Join(err, writer.Close())
	}
	asker, err := newMix(benchHost, s.keys, s.questions, l.options.Seed+round)
	if err != nil {
		return pair{}, errors.Join(err, writer.Close())
	}
	said := make(chan error, 1)
	go func() { // the load has this goroutine's thread; l.sample waits for nothing of it
		said <- errors.Join(say(ctx, writer, market, l.options.Warmup+l.options.Measure/10), writer.Close())
	}()
	p.a, err = l.sample(ctx, found, &load{
		address: found.address, asker: asker, seed: l.options.Seed + round, connections: l.options.Connections, rate: rate,
		warmup: l.options.Warmup, measure: l.options.Measure,
	})
	if err = errors.Join(err, <-said); err != nil {
		return pair{}, err
	}
	_, err = node.process.line(ctx, importedText)
	return p, err
}

// say writes what every booth says now, after a pause.
func say(ctx context.Context, to *os.File, market []booth, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	lines, now := []byte(observationHeader), time.Now()
	for i := range market {
		lines = market[i].appendLine(lines, market[i].source, now)
	}
	_, err := to.Write(lines)
	return err
}

// observationHeader is the first line of a file of observations.
const observationHeader = "observedAt,institutionId,currency,channel,kind,buy,sell,sourceId,effectiveDate,publishedAt\n"

// appendLine appends what a booth says at an instant, as a line of such a file. source is who tells it.
func (b *booth) appendLine(dst []byte, source string, at time.Time) []byte {
	o := b.observation(at)
	return fmt.Appendf(dst, "%s,%s,%s,%s,%s,%s,%s,%s,%s,\n", at.UTC().Format(time.RFC3339), o.InstitutionID, o.Currency, engine.Unspecified, o.Kind,
		o.Buy, o.Sell, source, o.EffectiveDate)
}
