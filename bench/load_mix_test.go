package main

import (
	"bufio"
	"bytes"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/tasard/tasard/engine"
	"pgregory.net/rapid"
)

// mustMix makes a mix of which the test knows that it can be asked.
func mustMix(t testing.TB, keys []string, questions []question, seed uint64) asker {
	t.Helper()
	m, err := newMix("node.example:8080", keys, questions, seed)
	if err != nil {
		t.Fatalf("mix: %v", err)
	}
	return m
}

// stream is the first n requests, as they go over the wire.
func stream(a asker, seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	var all []byte
	for range n {
		all = a.next(all, random)
	}
	return all
}

func TestMix_SameSeedSameBytes(t *testing.T) {
	keys := []string{"k-1", "k-2", "k-3"}
	make := func(seed uint64) []byte { return stream(mustMix(t, keys, mixes("ambar")[mixAll], seed), seed, 500) }
	if !bytes.Equal(make(7), make(7)) {
		t.Error("two mixes of one seed differ")
	}
	if bytes.Equal(make(7), make(8)) {
		t.Error("mixes of two seeds are the same")
	}
}

// Every request is one that net/http reads, with the host, one of the keys, and the lines of its question.
func TestMix_Requests(t *testing.T) {
	keys := []string{"k-1", "k-2", "k-3", "k-4"}
	questions := mixes("ambar")[mixAll]
	const n = 20_000
	reader := bufio.NewReader(bytes.NewReader(stream(mustMix(t, keys, questions, 1), 1, n)))
	asked, by := map[string]int{}, map[string]int{}
	for i := range n {
		request, err := http.ReadRequest(reader)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		path := request.RequestURI
		if at := strings.Index(path, "amount="); at >= 0 {
			path = path[:at+len("amount=")]
		}
		if request.Host != "node.example:8080" || request.Method != http.MethodGet {
			t.Fatalf("request %d: %s on host %s", i, request.Method, request.Host)
		}
		asked[path+request.Header.Get("Accept-Encoding")]++
		by[request.Header.Get("Authorization")]++
	}
	weights := 0
	for _, q := range questions {
		weights += q.weight
	}
	for _, q := range questions {
		path := q.path
		if q.lines != "" {
			path += "gzip"
		}
		near(t, q.operation, asked[path], n*q.weight/weights)
	}
	for _, key := range keys {
		near(t, key, by["Bearer "+key], n/len(keys))
	}
	if len(asked) != len(questions) || len(by) != len(keys) {
		t.Errorf("asked %v by %v, want %d questions by %d keys", asked, by, len(questions), len(keys))
	}
}

// near wants a count within a fifth, and 40, of what was expected.
func near(t *testing.T, what string, got, want int) {
	t.Helper()
	if margin := want/5 + 40; got < want-margin || got > want+margin {
		t.Errorf("%s: %d times, want about %d", what, got, want)
	}
}

// The table of mixes names each operation of the reports once, and all of them together.
func TestMix_Names(t *testing.T) {
	table := mixes("ambar")
	names := []string{"best", "full", "gzip", "convert", "rates", "history", "currencies", "institutions", "institution"}
	for _, name := range names {
		if questions := table[name]; len(questions) != 1 || questions[0].operation != name {
			t.Errorf("%s: %v, want one question of that name", name, questions)
		}
	}
	if len(table) != len(names)+1 || len(table[mixAll]) != len(names) {
		t.Errorf("%d mixes with %d questions together, want %d and %d", len(table), len(table[mixAll]), len(names)+1, len(names))
	}
	for _, q := range table[mixAll] {
		if q.weight > table[mixBest][0].weight {
			t.Errorf("%s is asked more often than best", q.operation)
		}
	}
}

func TestMix_WithoutKeys(t *testing.T) {
	got := string(stream(mustMix(t, nil, mixes("x")[mixCurrencies], 1), 1, 1))
	if want := "GET /v1/currencies HTTP/1.1\r\nHost: node.example:8080\r\n\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMix_Refuses(t *testing.T) {
	tests := map[string][]question{
		"nothing":                    nil,
		"a weight of 0":              {{operation: "x", path: "/x"}},
		"a negative weight":          {{operation: "x", weight: -1, path: "/x"}},
		"a path with a space":        {{operation: "x", weight: 1, path: "/x y"}},
		"a path with a line":         {{operation: "x", weight: 1, path: "/x\r\nHost: y"}},
		"no path":                    {{operation: "x", weight: 1}},
		"a line that does not end":   {{operation: "x", weight: 1, path: "/x", lines: "Accept-Encoding: gzip"}},
		"a line that ends the head":  {{operation: "x", weight: 1, path: "/x", lines: "A: b\r\n\r\n"}},
		"lines that begin with none": {{operation: "x", weight: 1, path: "/x", lines: "\r\n"}},
	}
	for name, questions := range tests {
		if _, err := newMix("h", nil, questions, 1); !errors.Is(err, errMix) {
			t.Errorf("%s: error %v, want errMix", name, err)
		}
	}
}

// No amount comes twice, within a mix and over the mixes of neighbouring seeds, and each is one that the node takes.
func TestMix_AmountsAreNew(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(4) {
		requests := stream(mustMix(t, nil, mixes("x")[mixConvert], seed), seed, 5000)
		for _, request := range strings.SplitAfter(string(requests), "\r\n\r\n") {
			_, rest, asked := strings.Cut(request, "amount=")
			if !asked {
				continue
			}
			amount, _, _ := strings.Cut(rest, " ")
			if _, err := engine.ParseAmount(amount); err != nil {
				t.Fatalf("seed %d: amount %q: %v", seed, amount, err)
			}
			if seen[amount] {
				t.Fatalf("seed %d: amount %s was asked before", seed, amount)
			}
			seen[amount] = true
		}
	}
	if len(seen) != 4*5000 {
		t.Errorf("%d amounts, want %d", len(seen), 4*5000)
	}
}

// The amounts are a permutation: two numbers that are told apart below amountCount have two amounts.
func TestMix_AmountsAreBijective(t *testing.T) {
	if divisor(amountCount, amountStride) != 1 {
		t.Fatalf("%d and %d have a common factor", uint64(amountCount), uint64(amountStride))
	}
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.Uint64Range(0, amountCount-1)
		one, other := numbers.Draw(t, "one"), numbers.Draw(t, "other")
		a, b := string(appendAmount(nil, one)), string(appendAmount(nil, other))
		if (a == b) != (one == other) {
			t.Fatalf("%d is %s, %d is %s", one, a, other, b)
		}
		if _, err := engine.ParseAmount(a); err != nil || !strings.Contains(a, ".") {
			t.Fatalf("%d is %s: %v", one, a, err)
		}
	})
}

func divisor(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

func TestMix_AllocatesNothing(t *testing.T) {
	m := mustMix(t, []string{"k-1", "k-2"}, mixes("ambar")[mixAll], 1)
	random := rand.New(rand.NewPCG(1, 0))
	buffer := make([]byte, 0, 1024)
	if got := testing.AllocsPerRun(1000, func() { buffer = m.next(buffer[:0], random) }); got != 0 {
		t.Errorf("%v allocations for each request, want none", got)
	}
}

func BenchmarkMix(b *testing.B) {
	m := mustMix(b, []string{"k-1", "k-2"}, mixes("ambar")[mixAll], 1)
	random := rand.New(rand.NewPCG(1, 0))
	buffer := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buffer = m.next(buffer[:0], random)
	}
}
