package account

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// sweep returns whole when SWEEP=whole, as in make check, and sample otherwise.
func sweep(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at parses an instant.
func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// noon is an ordinary Wednesday in Santo Domingo.
var noon = at("2026-06-17T16:00:00Z")

// idOf is the id of an address, without checks.
func idOf(address string) EmailID { return Email{address}.ID() }

// codeOf is the code of an *engine.Error, "" for other errors.
func codeOf(err error) engine.Code {
	var refusal *engine.Error
	if !errors.As(err, &refusal) {
		return ""
	}
	return refusal.Code
}
