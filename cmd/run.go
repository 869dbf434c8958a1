package cmd

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"math"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"go.uber.org/automaxprocs/maxprocs"

	"github.com/tasard/tasard/cmd/internal/process"
)

// Run carries out the command that the process's arguments name, with the real world: environment, streams, clock and chance. It returns
// the exit code; when ctx ends, commands stop in order.
func Run(ctx context.Context) int {
	p := &commands{&process.Process{
		Name: os.Args[0], Args: os.Args[1:], Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Clock: time.Now, Seed: randomSeed, Random: rand.Reader,
	}}
	if os.Getenv("GOGC") == "" {
		p.OnReady = func() { debug.SetGCPercent(gcPercent) }
	}
	setProcessors()
	return p.run(ctx)
}

// SignalContext is a context that ends with the first SIGINT or SIGTERM. When it has ended, the next signal kills, in case the orderly stop
// hangs.
func SignalContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx
}

// setProcessors has the runtime use one processor where a control group allows no more than that. By itself it takes two at least: then
// both threads use up what there is and stand still together, and overload is served at half the rate, each answer fifteen times as late.
func setProcessors() {
	const runtimeLeast = 2
	if runtime.GOMAXPROCS(0) != runtimeLeast {
		return
	}
	whole := func(limit float64) int { return int(math.Ceil(limit)) }
	_, _ = maxprocs.Set(maxprocs.RoundQuotaFunc(whole)) // where the limit can't be read the runtime's choice stands
}

// gcPercent is how much garbage may gather beside what is in use, before it is collected, once a node has read its log: reading makes
// much, requests make none. A third of what is usual costs hardly any time then, and saves memory when ten thousand clients are connected.
const gcPercent = 30

// randomSeed is taken from the system's source of chance, which does not fail.
func randomSeed() uint64 {
	var bytes [8]byte
	_, _ = rand.Read(bytes[:])
	return binary.LittleEndian.Uint64(bytes[:])
}
