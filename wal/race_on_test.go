//go:build race

package wal

// underRace says that the race detector slows everything down tenfold: the sweeps then take samples.
const underRace = true
