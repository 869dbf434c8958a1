package cmd

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
	partly, kills := 0, sweep(4, 20)
	for range kills {
		data := t.TempDir()
		seen := killWhileImporting(t, data, realFile, chance.IntN(60))
		recovered, now := startNode(t, data), newWitness()
		now.look(recovered)
		for _, problem := range seen.lost(now) {
			t.Error(problem)
		}
		if len(now.checked) == 0 {
			continue
		}
		partly++
		want := sample(recovered)
		recovered.signal(os.Kill)
		sameAnswers(t, sample(startNode(t, data)), want)
	}
	t.Logf("%d kills, %d times there was something to recover", kills, partly)
	if partly == 0 {
		t.Error("no kill fell into the import")
	}
}

// killWhileImporting starts a node with an import, asks it without pause, and kills it after so many whole answers.
func killWhileImporting(t *testing.T, data, file string, answers int) *witness {
	t.Helper()
	p := start(t, realNow, serveArgs(data, "--import", file)...).listening()
	seen := newWitness()
	for seen.answers <= answers {
		if !seen.look(p) {
			t.Fatalf("the node is gone:\n%s", p.output())
		}
	}
	p.signal(os.Kill)
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
	needReal(t)
	whole, broken, file := t.TempDir(), t.TempDir(), realPart(t, sweep(4, 1))
	mustRun(t, "import", "--data", whole, file)
	killWhileImporting(t, broken, file, 5)
	t.Log(strings.TrimSpace(mustRun(t, "import", "--data", broken, file)))
	sameAnswers(t, answers(startNode(t, broken)), answers(startNode(t, whole)))
}
