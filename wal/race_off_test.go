//go:build !race

package wal

const underRace = false
