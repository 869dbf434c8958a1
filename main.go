package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// main gives the command the real world: arguments, environment, streams, clock, chance and signals.
func main() {
	p := &process{
		name: os.Args[0], args: os.Args[1:], environ: os.Environ(),
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		clock: time.Now, seed: randomSeed, random: rand.Reader,
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	os.Exit(p.run(untilSignal()))
}

// garbagePercent is how much garbage may gather beside what is in use, before it is collected. Requests make none, so that half of what
// is usual costs hardly any time, and saves memory when ten thousand clients are connected.
const garbagePercent = 50

// untilSignal is a context that ends with the first SIGINT or SIGTERM. When it has ended, the next signal kills, in case
// the orderly stop hangs.
func untilSignal() context.Context {
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

// randomSeed is taken from the system's source of chance, which does not fail.
func randomSeed() uint64 {
	var bytes [8]byte
	_, _ = rand.Read(bytes[:])
	return binary.LittleEndian.Uint64(bytes[:])
}
