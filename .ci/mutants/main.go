package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"time"
)

// scoreMin is the share of mutants, in percent, that the tests must find.
const scoreMin = 85

// part is some files of a package.
type part struct {
	dir   string
	files []string // patterns; none: all
}

// groups are what can be asked for.
func groups() map[string][]part {
	return map[string][]part{
		"wal":    {{dir: "wal", files: []string{"[^b]*.go"}}}, // the log without its backups
		"backup": {{dir: "wal", files: []string{"backup*.go"}}},
		"quota": {{dir: "engine", files: []string{"quota.go", "lease.go", "account.go", "accounts.go", "days.go", "strangers.go",
			"registry*.go", "purse.go", "shares.go", "node.go"}}},
		"auth":    {{dir: "engine", files: []string{"secret.go", "email.go"}}, {dir: "httpapi", files: []string{"auth*.go"}}},
		"decimal": {{dir: "engine", files: []string{"decimal.go", "amount.go"}}},
		"time":    {{dir: "engine", files: []string{"date.go", "clock.go", "slots.go"}}},
	}
}

func (p part) has(name string) bool {
	for _, pattern := range p.files {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return len(p.files) == 0
}

// options are what the command line says.
type options struct {
	fresh   bool
	workers int
	longest time.Duration // of all runs of a part
	slow    time.Duration // a test that takes longer is not asked
	sample  int           // of a part, so many mutants; 0: all
}

func main() {
	var o options
	flag.BoolVar(&o.fresh, "fresh", false, "forget the results kept")
	flag.IntVar(&o.workers, "workers", 2, "test binaries that run at once")
	flag.DurationVar(&o.longest, "longest", 10*time.Minute, "stop after this time; the next call goes on")
	flag.DurationVar(&o.slow, "slow", 5*time.Second, "tests that take longer are not asked")
	flag.IntVar(&o.sample, "sample", 0, "plant only so many of each package, drawn evenly and always the same; 0: all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, flag.Arg(0), o); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// measure runs a group and prints its table.
func measure(ctx context.Context, name string, o options) error {
	parts, ok := groups()[name]
	if !ok || flag.NArg() != 1 {
		return errors.New("name one group: wal, backup, quota, auth, decimal or time")
	}
	known, err := readEquivalents(".ci/mutants/equivalent.txt")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.longest)
	defer cancel()
	all := &score{name: name}
	for _, p := range parts {
		s, err := measurePart(ctx, name, p, o, known)
		if err != nil {
			return fmt.Errorf("%s: %w", p.dir, err)
		}
		all.add(s)
	}
	return all.print(os.Stdout)
}

// measurePart plants all mutants of a part and counts.
func measurePart(ctx context.Context, name string, p part, o options, known map[string]string) (*score, error) {
	pkg, err := load(ctx, p)
	if err != nil {
		return nil, err
	}
	mutants, sites := find(pkg)
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	defer os.RemoveAll(work)
	b, err := build(ctx, pkg, sites, mutants, work)
	if err != nil {
		return nil, err
	}
	kept := openResults(strings.Join([]string{".tools/mutants/", name, "-", p.dir, ".json"}, ""), pkg.digest, o.fresh)
	r := &runner{pkg: pkg, binaries: b, options: o, kept: kept, work: work}
	if err := r.watch(ctx); err != nil {
		return nil, err
	}
	drawn := draw(mutants, o.sample)
	if err := r.all(ctx, drawn); err != nil {
		return nil, err
	}
	return count(p.dir, mutants, drawn, kept, known)
}

// draw takes n mutants in an order that only their names decide: a larger sample has the smaller one in it.
func draw(mutants []*mutant, n int) []*mutant {
	if n <= 0 || n >= len(mutants) {
		return mutants
	}
	drawn := slices.Clone(mutants)
	slices.SortFunc(drawn, func(a, b *mutant) int {
		x, y := sha256.Sum256([]byte(a.key)), sha256.Sum256([]byte(b.key))
		return bytes.Compare(x[:], y[:])
	})
	return drawn[:n]
}
