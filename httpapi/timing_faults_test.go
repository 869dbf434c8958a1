//go:build faults

package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Limits of the timing tests (reliability S3, S4).
const (
	welchMax = 4.5
	// plantedDelay is the smallest difference that a test must see to count.
	plantedDelay = 5 * time.Microsecond
	// timingCrop is the share of samples that is kept: the slowest were held up by something else.
	timingCrop = 0.8
)

// timingPair is two kinds of requests of the same length. The duration of an answer must not reveal the kind.
type timingPair struct {
	name string
	a, b func(i int) exchange
}

// The code of a refusal is in the answer (decision E1), so only keys with the same refusal are compared.
func timingPairs() []timingPair {
	codes := func(name string) func(int) exchange {
		return func(i int) exchange {
			return exchange{method: "POST", target: codesPath, lines: []string{jsonLine}, body: fmt.Sprintf(`{"email":"%s%02d@example.do"}`, name, i%timingKnown)}
		}
	}
	sessions := func(name string) func(int) exchange {
		return func(i int) exchange {
			return exchange{method: "POST", target: sessionsPath, lines: []string{jsonLine},
				body: fmt.Sprintf(`{"email":"%s%02d@example.do","code":"%08d"}`, name, i%timingKnown, i%1000)}
		}
	}
	keys := func(number func(int) int, target string) func(int) exchange {
		return func(i int) exchange {
			return exchange{method: "GET", target: target, lines: []string{bearer(testKey(number(i % timingKnown)))}}
		}
	}
	return []timingPair{
		{"S3 codes: known and unknown", codes("known"), codes("other")},
		{"S3 sessions: known and unknown", sessions("known"), sessions("other")},
		{"S4 keys: nearly a known one and unknown", keys(nearKeys, "/v1/currencies"), keys(farKeys, "/v1/currencies")},
		{"S4 usage: nearly a known one and unknown", keys(nearKeys, usagePath), keys(farKeys, usagePath)},
	}
}

// timingKnown is how many addresses and keys there are of a kind.
const timingKnown = 100

// The numbers of keys: known ones, unknown ones that share all but their end with those, and unknown ones that
// share nothing.
func knownKeys(i int) int { return int(mix(uint64(i)) % 1e18) }
func nearKeys(i int) int  { return knownKeys(i)/10*10 + (knownKeys(i)+1)%10 }
func farKeys(i int) int   { return knownKeys(i + timingKnown) }

// refusingAccounts refuses all requests alike; work, when set, is a planted difference.
type refusingAccounts struct {
	*fakeAccounts
	work func(known bool)
}

func (e *refusingAccounts) RequestCode(to account.Email, _ account.Requester) error {
	if e.work != nil {
		e.work(to.String()[0] == 'k')
	}
	return nil
}

func (e *refusingAccounts) OpenSession(of account.Email, _ string, from account.Requester) (account.Secret, time.Time, error) {
	_ = e.RequestCode(of, from)
	return account.Secret{}, time.Time{}, fault(engine.CodeInvalidCode, "The code is not valid.", 0)
}

func (e *refusingAccounts) KeyUsage(account.Digest) (account.QuotaResult, error) {
	return account.QuotaResult{}, fault(engine.CodeInvalidKey, "The key is not valid.", 0)
}

type refusingAdmitter struct{ *fakeAdmitter }

func (g refusingAdmitter) Admit(account.Caller) (account.Admission, error) {
	return account.Admission{}, fault(engine.CodeInvalidKey, "The key is not valid.", 0)
}

// stopwatch sends requests one after the other, over one connection as long as the answers leave it open.
type stopwatch struct {
	dial   func() (net.Conn, *bufio.Reader)
	conn   net.Conn
	wire   *bufio.Reader
	room   []byte
	closes bool // the answers of the pair end their connection
}

func (w *stopwatch) connect() {
	if w.conn != nil {
		_ = w.conn.Close()
	}
	w.conn, w.wire = w.dial()
}

// length is how long the answer to a request is, with its headers.
func (w *stopwatch) length(t *testing.T, e exchange) int {
	t.Helper()
	w.connect()
	var copied bytes.Buffer
	must(w.conn.Write(e.bytes()))
	w.closes = parseAnswer(t, bufio.NewReaderSize(io.TeeReader(w.wire, &copied), 1), e.method).closes
	return copied.Len()
}

func (w *stopwatch) time(t *testing.T, request []byte, length int) float64 {
	t.Helper()
	if w.closes {
		w.connect()
	}
	begin := bubbleNow()
	must(w.conn.Write(request))
	must(io.ReadFull(w.wire, w.room[:length]))
	return float64(bubbleNow().Sub(begin))
}

// compare times a pair, in an order of chance, and gives Welch's t over what the crop leaves.
func (w *stopwatch) compare(t *testing.T, pair timingPair, samples int, chance *rand.Rand) float64 {
	t.Helper()
	length := w.length(t, pair.a(0))
	if other := w.length(t, pair.b(0)); other != length {
		t.Fatalf("%s: answers of %d and %d bytes", pair.name, length, other)
	}
	var times [2][]float64
	for i := range samples {
		requests := [2][]byte{pair.a(i).bytes(), pair.b(i).bytes()}
		first := chance.IntN(2)
		for _, which := range []int{first, 1 - first} {
			times[which] = append(times[which], w.time(t, requests[which], length))
		}
	}
	pooled := slices.Sorted(slices.Values(slices.Concat(times[0], times[1])))
	limit := pooled[int(timingCrop*float64(len(pooled)-1))]
	return welch(crop(times[0], limit), crop(times[1], limit))
}

func crop(times []float64, limit float64) (kept []float64) {
	for _, d := range times {
		if d <= limit {
			kept = append(kept, d)
		}
	}
	return kept
}

func welch(a, b []float64) float64 {
	meanA, errorA := meanAndError(a)
	meanB, errorB := meanAndError(b)
	return (meanA - meanB) / math.Sqrt(errorA+errorB)
}

// meanAndError is the mean and the square of its standard error.
func meanAndError(times []float64) (mean, squared float64) {
	for _, d := range times {
		mean += d
	}
	mean /= float64(len(times))
	for _, d := range times {
		squared += (d - mean) * (d - mean)
	}
	n := float64(len(times))
	return mean, squared / (n - 1) / n
}

func spin(d time.Duration) {
	for begin := bubbleNow(); bubbleNow().Sub(begin) < d; {
	}
}

// playTiming first looks for the planted difference, with more samples until it sees it, then holds the pairs to
// the limit.
func playTiming(t *testing.T, least, most int) {
	t.Helper()
	accounts := &refusingAccounts{fakeAccounts: newFakeAccounts(fakeNow)}
	s := serve(t, func(c *Config) {
		admitter := newFakeAdmitter(c.Clock)
		admitter.transition = keysRequiredIn(-time.Hour)
		c.Admitter, c.Accounts = refusingAdmitter{admitter}, accounts
	})
	w := &stopwatch{room: make([]byte, 1<<16), dial: func() (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", s.address)
		ok(t, err)
		return conn, bufio.NewReaderSize(conn, 1<<16)
	}}
	defer func() { _ = w.conn.Close() }()
	chance := rand.New(rand.NewPCG(1, 2))
	pairs := timingPairs()
	samples := least
	for ; ; samples *= 2 {
		if samples > most {
			t.Fatalf("a difference of %v is not seen with %d samples", plantedDelay, samples/2)
		}
		accounts.work = func(known bool) {
			if known {
				spin(plantedDelay)
			}
		}
		if seen := w.compare(t, pairs[0], samples, chance); seen > welchMax {
			t.Logf("control: a difference of %v gives t = %.1f with %d samples", plantedDelay, seen, samples)
			break
		}
	}
	accounts.work = nil
	for _, pair := range pairs {
		seen := w.compare(t, pair, samples, chance)
		t.Logf("%s: t = %.2f with %d samples", pair.name, seen, samples)
		if math.Abs(seen) > welchMax {
			t.Errorf("%s: t = %.2f, at most %.1f", pair.name, seen, welchMax)
		}
	}
}

// TestFaultsS3_S4_Timing: the time of an answer does not depend on whether an account or a key is there.
func TestFaultsS3_S4_Timing(t *testing.T) { playTiming(t, 100_000, 400_000) }
