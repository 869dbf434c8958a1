//go:build linux

package main

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// stream returns the first n requests as sent on the wire.
func stream(a requestSource, seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	var all []byte
	for range n {
		all = a.Next(all, random)
	}
	return all
}

// TestMix_Requests checks that net/http can read every request, with the host, one of the keys and its headers, as
// often as its weight says, and that the same seed makes the same requests.
func TestMix_Requests(t *testing.T) {
	const n, host = 20_000, "node.example:8080"
	keys, questions := []string{"k-1", "k-2", "k-3"}, mixes()[mixAll]
	m := newMix(host, keys, questions)
	all := stream(m, 1, n)
	if !bytes.Equal(all, stream(m, 1, n)) || bytes.Equal(all, stream(m, 2, n)) {
		t.Error("requests of one seed differ, or those of two seeds don't")
	}
	reader, counts, traces := bufio.NewReader(bytes.NewReader(all)), map[string]int{}, map[string]bool{}
	for i := range n {
		request, err := http.ReadRequest(reader)
		if err != nil || request.Host != host || request.Method != http.MethodGet {
			t.Fatalf("request %d: %+v, %v", i, request, err)
		}
		path, _, _ := strings.Cut(request.RequestURI, "amount=")
		counts[path+request.Header.Get("Accept-Encoding")]++
		counts[request.Header.Get("Authorization")]++
		traces[request.Header.Get("Traceparent")] = true
	}
	wants := map[string]int{}
	for _, q := range questions {
		_, encoding, _ := strings.Cut(strings.TrimSpace(q.headers), ": ")
		wants[strings.TrimSuffix(q.path, "amount=")+encoding] = n * q.weight / 100
	}
	for _, key := range keys {
		wants["Bearer "+key] = n / len(keys)
	}
	for what, want := range wants {
		if got := counts[what]; got < want-want/5-40 || got > want+want/5+40 {
			t.Errorf("%s: %d times, want about %d", what, got, want)
		}
	}
	if len(counts) != len(wants) || len(traces) < n-10 {
		t.Errorf("%v, want %v; %d trace IDs", counts, wants, len(traces))
	}
}

// TestMix_InTurn checks that every account sends one request in turn, and that a proxied request has an address.
func TestMix_InTurn(t *testing.T) {
	m := newMix("x", []string{"a", "b"}, mixes()[mixProxied])
	m.inTurn = true
	text := string(stream(m, 1, 3))
	if strings.Count(text, "Bearer a\r\n\r\n") != 2 || strings.Count(text, "Bearer b\r\n\r\n") != 1 || strings.Count(text, "\r\nX-Forwarded-For: 203.0.113.") != 3 {
		t.Error(text)
	}
}
