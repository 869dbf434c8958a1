package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// TestFixture_Sizes wants as many of everything as are asked for, all of it believable, whether known or invented.
func TestFixture_Sizes(t *testing.T) {
	for _, size := range []fixtureSize{standardSize(), {institutions: 450, currencies: 80}, {institutions: 2, currencies: 1}} {
		invented, err := inventedCatalogue(size)
		if fits := size.institutions <= 44; err != nil || fits != (invented == nil) {
			t.Fatalf("%+v: %d bytes are invented: %v", size, len(invented), err)
		}
		catalogue := engine.DefaultCatalogue()
		if invented != nil {
			if catalogue, err = catalogue.Extend(bytes.NewReader(invented), "invented"); err != nil {
				t.Fatal(err)
			}
		}
		booths := newBooths(catalogue, size)
		if want := size.currencies * (size.institutions + 1); len(booths) != want { // and the central bank
			t.Errorf("%+v: %d rates, want %d", size, len(booths), want)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for i := range booths {
			for range 30 { // days
				booths[i].drift(random)
			}
			o := booths[i].observation(time.Date(2026, 3, 2, 16, 0, 0, 0, time.UTC))
			buy, buyErr := engine.ParseDecimal(o.Buy)
			sell, sellErr := engine.ParseDecimal(o.Sell)
			currency, known := catalogue.Currency(o.Currency)
			if buyErr != nil || sellErr != nil || !known || buy.Compare(sell) >= 0 ||
				!currency.Lowest.IsNull() && buy.Compare(currency.Lowest) < 0 || !currency.Highest.IsNull() && sell.Compare(currency.Highest) > 0 {
				t.Errorf("not a believable rate: %+v", o)
			}
		}
	}
}

func TestCopyData(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "deep", "copy")
	long := bytes.Repeat([]byte("2"), 100_000)
	writeFile(t, filepath.Join(from, "a"), long)
	writeFile(t, filepath.Join(from, "LOCK"), nil)
	if err := os.Symlink("a", filepath.Join(from, "admin.sock")); err != nil { // no file of the log
		t.Fatal(err)
	}
	if err := copyData(from, to); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(to)
	if text, readErr := os.ReadFile(filepath.Join(to, "a")); err != nil || readErr != nil || len(entries) != 2 || !bytes.Equal(text, long) {
		t.Errorf("%v with %d bytes: %v, %v", entries, len(text), err, readErr)
	}
	if err := copyData(from, to); err == nil {
		t.Error("a copy is written over")
	}
}

func TestMetric(t *testing.T) {
	text := []byte("# TYPE a counter\na{x=\"1\"} 5\nab 6\na 1.5e+06\n")
	if got, err := metric(text, "a"); err != nil || got != 1_500_000 {
		t.Errorf("%d: %v", got, err)
	}
	for _, bad := range []string{"", "b 1", "a x", "a -1", "a NaN", "a 1e300"} {
		if got, err := metric([]byte(bad), "a"); err == nil {
			t.Errorf("%q: %d", bad, got)
		}
	}
}
