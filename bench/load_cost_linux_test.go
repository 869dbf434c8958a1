//go:build !race

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// The load must not be the slower side: of the CPU time of both, in one process, its thread uses the smaller half.
func TestLoad_CostsLessThanAServer(t *testing.T) {
	body := strings.Repeat("r", 2048)
	address := serveFast(t, func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString(body) })
	var ratios []float64
	for range 5 {
		generator, server, answers := costs(t, address)
		ratios = append(ratios, float64(generator)/float64(server))
		t.Logf("for each of %d answers: generator %v, server %v", answers, generator/time.Duration(answers), server/time.Duration(answers))
	}
	slices.Sort(ratios)
	if median := ratios[len(ratios)/2]; median > 1 { // measured: 0.6 to 0.7
		t.Errorf("the generator uses %.2f times the CPU time of a server that does nothing (median of %.2f)", median, ratios)
	}
}

// costs is the CPU time of the generator's thread in a run, and that of the rest of the process: the server in it.
func costs(t *testing.T, address string) (generator, server time.Duration, answers uint64) {
	t.Helper()
	l := short(address, 16, 0)
	l.asker = mustMix(t, []string{"k-1", "k-2"}, mixes("x")[mixBest], 1)
	var before, after time.Duration
	l.begins = func() error { before = processTime(t); return nil }
	l.ends = func() error { after = processTime(t); return nil }
	found := mustDrive(t, l)
	return found.generator, after - before - found.generator, found.answers
}

func processTime(t *testing.T) time.Duration {
	t.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatalf("read the process's CPU time: %v", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
