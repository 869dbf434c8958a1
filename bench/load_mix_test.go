package main

import (
	"bufio"
	"bytes"
	"errors"
	"math/big"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/tasard/tasard/engine"
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

// Every request is one that net/http reads, with the host, one of the keys, and the lines of its question, as often as its weight says.
// The same seed makes the same requests.
func TestMix_Requests(t *testing.T) {
	const n = 20_000
	keys, table := []string{"k-1", "k-2", "k-3"}, mixes("ambar")
	questions := table[mixAll]
	all := stream(mustMix(t, keys, questions, 1), 1, n)
	if !bytes.Equal(all, stream(mustMix(t, keys, questions, 1), 1, n)) || bytes.Equal(all, stream(mustMix(t, keys, questions, 2), 2, n)) {
		t.Error("mixes of one seed differ, or those of two seeds don't")
	}
	reader, counts := bufio.NewReader(bytes.NewReader(all)), map[string]int{}
	for i := range n {
		request, err := http.ReadRequest(reader)
		if err != nil || request.Host != "node.example:8080" || request.Method != http.MethodGet {
			t.Fatalf("request %d: %+v, %v", i, request, err)
		}
		path, amount, asks := strings.Cut(request.RequestURI, "amount=")
		if asks == (amount == "") {
			t.Fatalf("request %d: %s", i, request.RequestURI)
		}
		counts[path+request.Header.Get("Accept-Encoding")]++
		counts[request.Header.Get("Authorization")]++
	}
	wants, weights := map[string]int{}, 0
	for _, q := range questions {
		weights += q.weight
	}
	for _, q := range questions {
		_, encoding, _ := strings.Cut(strings.TrimSpace(q.lines), ": ")
		wants[strings.TrimSuffix(q.path, "amount=")+encoding] = n * q.weight / weights
		if alone := table[q.operation]; len(alone) != 1 || alone[0] != q {
			t.Errorf("%s by itself is %v", q.operation, alone)
		}
	}
	for _, key := range keys {
		wants["Bearer "+key] = n / len(keys)
	}
	for what, want := range wants {
		if got := counts[what]; got < want-want/5-40 || got > want+want/5+40 {
			t.Errorf("%s: %d times, want about %d", what, got, want)
		}
	}
	if len(counts) != len(wants) || len(questions) != 9 || len(table) != 10 {
		t.Errorf("%v, want %v; %d questions, %d mixes", counts, wants, len(questions), len(table))
	}
}

func TestMix_Refuses(t *testing.T) {
	for name, questions := range map[string][]question{
		"nothing":                    nil,
		"a weight of 0":              {{operation: "x", path: "/x"}},
		"a path with a space":        {{operation: "x", weight: 1, path: "/x y"}},
		"a path with a line":         {{operation: "x", weight: 1, path: "/x\r\nHost: y"}},
		"no path":                    {{operation: "x", weight: 1}},
		"a line that does not end":   {{operation: "x", weight: 1, path: "/x", lines: "Accept-Encoding: gzip"}},
		"a line that ends the head":  {{operation: "x", weight: 1, path: "/x", lines: "A: b\r\n\r\n"}},
		"lines that begin with none": {{operation: "x", weight: 1, path: "/x", lines: "\r\n"}},
	} {
		if _, err := newMix("h", nil, questions, 1); !errors.Is(err, errMix) {
			t.Errorf("%s: error %v, want errMix", name, err)
		}
	}
}

// No amount comes twice, within a mix and over the mixes of neighbouring seeds, and each is one that the node takes. Below amountCount
// two numbers have two amounts, because the stride has no factor in common with it.
func TestMix_AmountsAreNew(t *testing.T) {
	if new(big.Int).GCD(nil, nil, big.NewInt(amountCount), big.NewInt(amountStride)).Int64() != 1 {
		t.Errorf("%d and %d have a common factor", uint64(amountCount), uint64(amountStride))
	}
	const each = 3000
	seen := map[string]bool{}
	for seed := range uint64(4) {
		requests := string(stream(mustMix(t, nil, mixes("x")[mixConvert], seed), seed, each))
		for request := range strings.SplitSeq(strings.TrimSuffix(requests, "\r\n\r\n"), "\r\n\r\n") {
			_, rest, _ := strings.Cut(request, "amount=")
			amount, rest, _ := strings.Cut(rest, " ")
			if _, err := engine.ParseAmount(amount); err != nil || rest != "HTTP/1.1\r\nHost: node.example:8080" {
				t.Fatalf("seed %d: %q: %v", seed, request, err)
			}
			seen[amount] = true
		}
	}
	if len(seen) != 4*each {
		t.Errorf("%d amounts, want %d", len(seen), 4*each)
	}
}
