package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"
)

// The sizes that growth is measured between.
const (
	growthTimes         = 10
	growthAccountsTimes = 1000
	growthAccounts      = 100
)

func measureF11(ctx context.Context, l *lab, g *goal) error {
	base := fixtureSize{institutions: 44, currencies: 8, accounts: growthAccounts, days: 7}
	institutions, currencies, accounts := base, base, base
	institutions.institutions *= growthTimes
	currencies.currencies *= growthTimes
	accounts.accounts *= growthAccountsTimes
	before := len(l.started)
	small, err := l.grown(ctx, "base", base)
	if err != nil {
		return err
	}
	for _, more := range []struct {
		name, dir string
		size      fixtureSize
	}{
		{"10 times the institutions", "institutions", institutions},
		{"10 times the currencies", "currencies", currencies},
		{"1,000 times the accounts", "accounts", accounts},
	} {
		place := len(l.started)
		large, err := l.grown(ctx, more.dir, more.size)
		if err != nil {
			return err
		}
		if more.size.accounts > base.accounts {
			if err := l.everybody(ctx, large); err != nil {
				return err
			}
		}
		pairs, err := l.compare(ctx, large, small)
		if err = errors.Join(err, l.stopFrom(place)); err != nil {
			return err
		}
		names := [2]string{"more", "base"}
		g.Measures = append(g.Measures,
			ratioOf("requests/s, "+more.name, "/s", pairs, names, perSecond).bound(0.9, true, "each account has an actor, a mailbox and two windows of its own: of 100,000 none is in the processor's caches when it is asked for"),
			ratioOf("CPU time of a request, "+more.name, "ns", pairs, names, cpuEach).free())
	}
	return l.stopFrom(before)
}

// grown starts a node with so much data, asked for the same page by all its accounts.
func (l *lab) grown(ctx context.Context, name string, size fixtureSize) (side, error) {
	made, err := newFixture(filepath.Join(l.dir, "growth-"+name), size)
	if err != nil {
		return side{}, err
	}
	found, err := l.start(ctx, newNode(l.tasard, made))
	return side{target: found, keys: made.keys, questions: mixes(benchInstitution)[mixBest]}, err
}

// everybody asks once in the name of each account: it wakes up at its first request, and leases.
func (l *lab) everybody(ctx context.Context, s side) error {
	roll := &roll{keys: s.keys, question: s.questions[0]}
	for roll.called < len(s.keys) {
		if _, err := l.sample(ctx, s.target, &load{
			address: s.address, asker: roll, seed: l.options.Seed, connections: l.options.Connections, measure: time.Second,
		}); err != nil {
			return err
		}
	}
	return nil
}
