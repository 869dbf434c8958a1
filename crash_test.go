package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

const (
	killCycles       = 20
	killCyclesSample = 5 // under the race detector
)

// witness remembers the newest word on each rate that a node ever answered.
type witness struct {
	checked map[string]string // lastCheckedAt by rate id; the texts order as the instants do
	answers int
}

// look asks for all rates once; it returns false when the node is gone.
func (w *witness) look(p *program) bool {
	for cursor := 0; ; cursor += 200 {
		status, body, err := p.get(fmt.Sprintf("/v1/rates?limit=200&cursor=%d", cursor))
		if err != nil {
			return false
		}
		if status == http.StatusServiceUnavailable {
			return true
		}
		var page struct {
			Data []struct{ ID, LastCheckedAt string }
			Meta struct{ NextCursor *int }
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			return false // cut short by the kill
		}
		w.answers++
		for _, rate := range page.Data {
			w.checked[rate.ID] = max(w.checked[rate.ID], rate.LastCheckedAt)
		}
		if page.Meta.NextCursor == nil {
			return true
		}
	}
}

// lost tells what a node answered before that another one does not know.
func (w *witness) lost(now *witness) []string {
	var lost []string
	for id, checked := range w.checked {
		if now.checked[id] < checked {
			lost = append(lost, fmt.Sprintf("%s was answered as of %s, now it is as of %q", id, checked, now.checked[id]))
		}
	}
	return lost
}

func newWitness() *witness { return &witness{checked: map[string]string{}} }

// TestW1_KilledWhileImporting kills a node at random moments of an import. What it answered must be known after the next
// start, and two starts must answer the same.
func TestW1_KilledWhileImporting(t *testing.T) {
	t.Parallel()
	needReal(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	whole := importSpan(t)
	var looked, partly int
	cycles := killCycles
	if raceDetector {
		cycles = killCyclesSample
	}
	for range cycles {
		data := t.TempDir()
		seen := watchUntilKilled(t, data, time.Duration(chance.Int64N(int64(whole))))
		looked += seen.answers

		recovered := startNode(t, data)
		now := newWitness()
		now.look(recovered)
		for _, problem := range seen.lost(now) {
			t.Error(problem)
		}
		if len(now.checked) > 0 {
			partly++
			want := sample(recovered)
			recovered.signal(os.Kill)
			again := startNode(t, data)
			sameAnswers(t, sample(again), want)
			again.signal(os.Kill)
		}
	}
	t.Logf("%d kills within %s, %d answers seen before them, %d times there was something to recover", cycles, whole, looked, partly)
	if looked == 0 || partly == 0 {
		t.Error("no kill fell into the import")
	}
}

// importSpan is how long the import takes from the start of the process.
func importSpan(t *testing.T) time.Duration {
	t.Helper()
	clock := clockFrom("now")
	began := clock()
	p := start(t, realNow, serveArgs(t.TempDir(), "--import", realFile)...)
	p.await("imported")
	p.signal(os.Kill)
	return clock().Sub(began)
}

// watchUntilKilled starts a node with an import, asks it without pause, and kills it after a while.
func watchUntilKilled(t *testing.T, data string, after time.Duration) *witness {
	t.Helper()
	p := start(t, realNow, serveArgs(data, "--import", realFile)...)
	timer := time.AfterFunc(after, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	seen := newWitness()
	if p.listens() {
		for seen.look(p) {
			if p.over() {
				break
			}
		}
	}
	p.end()
	return seen
}

// sample are the answers of every operation.
func sample(p *program) map[string]string {
	all := map[string]string{}
	for _, path := range operations() {
		all[path] = withoutMoment(p.mustGet(path))
	}
	return all
}

// TestW1_Control wants the comparison to see a rate that was answered and then lost, and one that fell back.
func TestW1_Control(t *testing.T) {
	seen, now := newWitness(), newWitness()
	seen.checked["a"], seen.checked["b"], seen.checked["c"] = "2026-06-30T14:00:00Z", "2026-06-30T14:00:00Z", "2026-06-30T14:00:00Z"
	now.checked["a"], now.checked["b"] = "2026-06-30T14:00:01Z", "2026-06-30T13:59:59Z"
	if lost := seen.lost(now); len(lost) != 2 {
		t.Errorf("found %q, want b and c", lost)
	}
	if found := differences(map[string]string{"/x": "1", "/z": "3"}, map[string]string{"/x": "2", "/y": "2"}); len(found) != 3 {
		t.Errorf("found %q, want /x, /y and /z", found)
	}
}

// TestImport_AgainAfterAKill wants the same command to finish the work of a killed one, with the same answers.
func TestImport_AgainAfterAKill(t *testing.T) {
	t.Parallel()
	leaveToWhole(t)
	needReal(t)
	whole, broken := t.TempDir(), t.TempDir()
	mustRun(t, "import", "--data", whole, realFile)
	watchUntilKilled(t, broken, importSpan(t)*2/3)
	for range 2 {
		t.Log(strings.TrimSpace(mustRun(t, "import", "--data", broken, realFile)))
	}
	a, b := start(t, realNow, serveArgs(whole)...).listening(), start(t, realNow, serveArgs(broken)...).listening()
	a.await("recovered")
	b.await("recovered")
	sameAnswers(t, answers(b), answers(a))
}
