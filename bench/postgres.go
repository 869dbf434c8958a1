package main

import (
	"context"
	"errors"
	"io"
)

// postgresContender is net/http with a pool of connections to PostgreSQL.
type postgresContender struct {
	program program
	dir     string // empty, for its data and socket
	rates   *publishedRates
	keys    []string
	quota   bool
}

var _ contender = (*postgresContender)(nil)

// publishedRates is what the node publishes, as it says it.
type publishedRates struct{}

// readPublished asks a node for everything that it publishes.
func readPublished(ctx context.Context, address, key string) (*publishedRates, error) {
	return nil, errors.New("not written yet")
}

// newPostgres answers from what a node publishes, to the keys. With quota each request is counted, durably, as the node does;
// without, one indexed query is all that a request costs.
func newPostgres(self program, dir string, rates *publishedRates, keys []string, quota bool) *postgresContender {
	return &postgresContender{program: self, dir: dir, rates: rates, keys: keys, quota: quota}
}

func (p *postgresContender) name() string {
	if p.quota {
		return "postgres"
	}
	return "postgres, reads only"
}
func (p *postgresContender) missing() string { return "" }

func (p *postgresContender) start(ctx context.Context, core int) (*target, error) {
	return nil, errors.New("not written yet")
}

func (p *postgresContender) stop() error { return nil }

// runPostgres is the subcommand: bench postgres SETTINGS. It ends with the context.
func runPostgres(ctx context.Context, args []string, out io.Writer) error {
	return errors.New("not written yet")
}
