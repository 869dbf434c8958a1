package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasard/tasard/httpapi/client"
)

// postgresContender is net/http with a pool of connections to PostgreSQL, all on one core, as the node shares its core with its log.
type postgresContender struct {
	program program
	rates   []client.Rate
	keys    []string
	quota   bool
	cluster *cluster
	process *child
}

var _ contender = (*postgresContender)(nil)

// newPostgres answers what a node publishes, to the keys. With quota each request opens with its key and is counted, durably, as
// the node does it; without, one indexed query is all that a request costs, whoever asks.
func newPostgres(self program, rates []client.Rate, keys []string, quota bool) *postgresContender {
	return &postgresContender{program: self, rates: rates, keys: keys, quota: quota}
}

func (p *postgresContender) name() string {
	if p.quota {
		return "postgres"
	}
	return "postgres, reads only"
}

func (p *postgresContender) missing() string {
	if postgresBin() == "" {
		return "PostgreSQL is not installed (Debian: postgresql)"
	}
	return ""
}

// start makes a new cluster, fills it and puts the server in front.
func (p *postgresContender) start(ctx context.Context, core int) (found *target, err error) {
	if why := p.missing(); why != "" {
		return nil, errors.New(why)
	}
	if p.cluster != nil {
		return nil, fmt.Errorf("start %s: it runs already", p.name())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	if p.cluster, err = startCluster(ctx, core); err != nil {
		return nil, err
	}
	filling, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	if err := fillDatabase(filling, p.cluster.dir, p.rates, p.keys); err != nil {
		return nil, fmt.Errorf("fill PostgreSQL: %w", err)
	}
	way := wayReadsOnly
	if p.quota {
		way = wayQuota
	}
	if p.process, err = spawn(&command{name: p.name(), program: p.program, args: []string{"postgres", p.cluster.dir, way}}, core); err != nil {
		return nil, err
	}
	address, err := p.process.listening(ctx)
	if err != nil {
		return nil, err
	}
	first := question{path: "/v1/rates/best?currency=USD&operation=buy&limit=10"}
	key := ""
	if p.quota && len(p.keys) > 0 {
		key = p.keys[0]
	}
	if _, err := awaitAnswer(ctx, p.process, address, first.request(key), time.Now()); err != nil {
		return nil, err
	}
	return &target{name: p.name(), address: address, processes: []int{p.cluster.process.pid(), p.process.pid()}}, nil
}

func (p *postgresContender) stop() error {
	err := stopOf(&p.process)
	if p.cluster != nil {
		err = errors.Join(err, p.cluster.stop())
		p.cluster = nil
	}
	return err
}
