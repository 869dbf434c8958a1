package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
)

// address is where a node answers that somebody else started.
type address struct{ host string }

// readAddress reads http://host:port, with a port of 80 where there is none.
func readAddress(text string) (*address, error) {
	found, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, err
	case found.Scheme != "http" || found.Host == "" || found.Path != "" && found.Path != "/" || found.RawQuery != "" || found.User != nil:
		return nil, errors.New("want http://host:port and nothing more")
	case found.Port() == "":
		return &address{net.JoinHostPort(found.Hostname(), "80")}, nil
	}
	return &address{found.Host}, nil
}

// run puts a load on the address and tells what came back.
func (a *address) run(ctx context.Context, s *settings, out io.Writer) error {
	keys, err := readKeys(s.keys)
	if err != nil {
		return err
	}
	asker, err := newMix(a.host, keys, mixes(benchInstitution)[s.mix], s.options.Seed)
	if err != nil {
		return err
	}
	order := &load{
		address: a.host, asker: asker, seed: s.options.Seed, connections: s.options.Connections, rate: s.rate,
		warmup: s.options.Warmup, measure: s.options.Measure,
	}
	found, err := order.run(ctx)
	if err != nil {
		return err
	}
	return found.tell(out)
}

// readKeys reads a file of keys; without one there are none.
func readKeys(path string) (keys []string, err error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if key := strings.TrimSpace(lines.Text()); key != "" {
			keys = append(keys, key)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("read the keys: %s has none", path)
	}
	return keys, nil
}

// tell writes what a load found.
func (t *tally) tell(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%d answers in %s, %.0f a second, %s\n", t.answers, t.elapsed.Round(1e6), float64(t.answers)/t.elapsed.Seconds(),
		bytesText(int64(t.bytes)))
	for _, status := range slices.Sorted(maps.Keys(t.statuses)) {
		fmt.Fprintf(&text, "  %d: %d\n", status, t.statuses[status])
	}
	if t.lost > 0 {
		fmt.Fprintf(&text, "  lost: %d\n", t.lost)
	}
	for _, p := range curvePoints(t.latency) {
		if p.Percentile >= 50 {
			fmt.Fprintf(&text, "  %7.3f %%  %s\n", p.Percentile, latency(p.Latency))
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}
