//go:build faults && !nocluster

package cluster

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/wal"
)

// TestFaultsCluster_KillLeader repeats TestProcesses_KillLeader.
func TestFaultsCluster_KillLeader(t *testing.T) { killLeader(t, 5) }

// corruption damages the contents of one of raft's files while its node is down.
type corruption func(chance *rand.Rand, content []byte) []byte

func flipBit(chance *rand.Rand, content []byte) []byte {
	for range 1 + chance.IntN(8) {
		content[chance.IntN(len(content))] ^= 1 << chance.IntN(8)
	}
	return content
}

func truncateContent(chance *rand.Rand, content []byte) []byte {
	return content[:chance.IntN(len(content))]
}

// diskFaults are kinds of files of raft; a file belongs to a kind if its path contains the word.
var diskFaults = []struct {
	name string
	word string
	harm corruption
}{
	{"entries changed", "/0000", flipBit},
	{"entries cut", "/0000", truncateContent},
	{"checkpoint changed", "/snapshot-", flipBit},
	{"checkpoint cut", "/snapshot-", truncateContent},
	{"mark changed", "/mark", flipBit},
	{"everything a little", "/", flipBit},
}

// TestFaultsCluster_DiskDamage stops nodes, damages raft's files, starts the nodes again and makes others lead. A node
// may stop with an error that names the file; then its directory is emptied, which must help. Every node that accepts
// changes must have all acknowledged records on its disk, and no two nodes may have different records at one sequence.
// With one damaged node of three the cluster goes on; with two it may stop until an operator intervenes. CLUSTER_DISKS
// sets the number of rounds for each kind of file.
func TestFaultsCluster_DiskDamage(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("CLUSTER_DISKS"))
	if err != nil {
		rounds = 1
	}
	seed := uint64(realClock().UnixNano())
	t.Logf("seed %d", seed)
	all := make([]*damageRound, len(diskFaults)*rounds)
	t.Run("rounds", func(t *testing.T) {
		for number := range all {
			fault, round := diskFaults[number/rounds], number%rounds
			t.Run(fmt.Sprintf("%s %d", fault.name, round+1), func(t *testing.T) {
				t.Parallel() // they mostly wait for elections
				all[number] = newDamageRound(t, rand.New(rand.NewPCG(seed, uint64(number))), 1+round%2)
				all[number].run(fault.word, fault.harm)
			})
		}
	})
	files, well, loud := 0, 0, map[string]int{}
	for _, r := range all {
		files += r.damaged
		if len(r.notes) == 0 {
			well++
		}
		for _, said := range r.notes {
			loud[said]++
		}
	}
	t.Logf("FIGURE %d rounds, %d files damaged: after %d all nodes went on with everything; else %v; nothing that was acknowledged was lost",
		len(all), files, well, loud)
}

// damageRound is three nodes, one or two of which have damaged files.
type damageRound struct {
	t       *testing.T
	chance  *rand.Rand
	configs []childConfig
	nodes   []*process // nil while stopped
	victims int
	damaged int      // number of files
	acked   []string // in the order of their sequences
	notes   []string // errors of nodes that stopped, and observations
}

func newDamageRound(t *testing.T, chance *rand.Rand, victims int) *damageRound {
	r := &damageRound{t: t, chance: chance, victims: victims, configs: newChildConfigs(t), nodes: make([]*process, 3)}
	t.Cleanup(func() {
		for i := range r.nodes {
			r.stop(i)
		}
	})
	return r
}

func (r *damageRound) run(word string, do corruption) {
	first := r.chance.IntN(3)
	r.start(word, do, first)
	if !r.write(5) {
		r.note("no changes with all nodes there")
	}
	if r.victims == 1 && !r.awaitCurrent() {
		r.note("a lack in the status that stays")
		r.emptyDir(first)
		if !r.awaitCurrent() {
			r.t.Error("a node that got its part anew lacks something")
		}
	}
	for i := range r.nodes { // so that the others lead
		if i == first || r.nodes[i] == nil || r.nodes[i].ask("standing") != "leads" {
			continue
		}
		r.stop(i)
		if !r.write(3) && r.victims == 1 {
			r.t.Errorf("no changes without n%d, although the status showed no lack", i+1)
		}
		r.launch(i)
	}
	if !r.write(5) {
		r.note("no changes at the end")
		if r.victims == 1 {
			r.t.Error("with one damaged node the cluster takes no changes any more")
		}
	}
	r.checkDisks()
}

// start starts all nodes, writes, damages the files of some and restarts them.
func (r *damageRound) start(word string, do corruption, first int) {
	var all sync.WaitGroup
	for i := range r.nodes {
		all.Go(func() { r.nodes[i], _ = startProcess(r.t, r.configs[i], exec.Command(os.Args[0])) })
	}
	all.Wait()
	if slices.Contains(r.nodes, nil) || !r.write(20+r.chance.IntN(100)) || !r.awaitCurrent() {
		r.t.Fatal("three new nodes do not become a cluster")
	}
	for k := range r.victims {
		i := (first + k) % 3
		r.stop(i)
		r.damage(r.configs[i].Dir, word, do)
	}
	if r.damaged == 0 {
		r.t.Fatal("no file was damaged: nothing is tested")
	}
	if r.victims == 1 {
		r.write(r.chance.IntN(10))
	}
	for k := range r.victims {
		r.launch((first + k) % 3)
	}
}

// damage damages raft's files whose path contains a word.
func (r *damageRound) damage(dir string, word string, do corruption) {
	dir = filepath.Join(dir, raftDirName)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, word) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil || len(content) == 0 {
			return err
		}
		r.damaged++
		return os.WriteFile(path, do(r.chance, content), 0o600)
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// launch starts a node. It may refuse to start if its error names a remedy, which launch then applies.
func (r *damageRound) launch(i int) {
	n, refusal := startProcess(r.t, r.configs[i], exec.Command(os.Args[0]))
	if n == nil {
		r.refused(i, refusal)
		if r.victims == 1 {
			r.emptyDir(i)
		}
		return
	}
	r.nodes[i] = n
}

// refused checks the error of a node that did not start.
func (r *damageRound) refused(i int, refusal string) {
	if !strings.Contains(refusal, filepath.Join(r.configs[i].Dir, raftDirName)) {
		r.t.Errorf("n%d does not start and says: %s", i+1, refusal)
	}
	r.note("a node that names the damaged file")
}

// emptyDir empties the directory of a node and starts it.
func (r *damageRound) emptyDir(i int) {
	r.stop(i)
	r.configs[i].Dir = r.t.TempDir()
	n, refusal := startProcess(r.t, r.configs[i], exec.Command(os.Args[0]))
	if n == nil {
		r.t.Errorf("n%d with an empty directory does not start and says: %s", i+1, refusal)
	}
	r.nodes[i] = n
}

func (r *damageRound) note(what string) { r.notes = append(r.notes, what) }

// until polls a condition until it holds or time is up.
func (r *damageRound) until(ok func() bool) bool {
	for end := realClock().Add(answerTimeout); realClock().Before(end); _ = sleep(r.t.Context(), 20*time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

// awaitCurrent waits until every node reports that no node lacks records, as an operator does before stopping the
// next node.
func (r *damageRound) awaitCurrent() bool {
	return r.until(func() bool {
		return !slices.ContainsFunc(r.nodes, func(n *process) bool { return n == nil || n.ask("whole") != "true" })
	})
}

// write appends records at nodes that accept them, notes the acknowledged ones, and reports whether all were.
func (r *damageRound) write(records int) bool {
	for k := range records {
		text := fmt.Sprintf("record %d of %d", len(r.acked), k)
		if !slices.ContainsFunc(r.nodes, func(n *process) bool { return n != nil && r.awaitWritable(n) && n.ask("append "+text) != "" }) {
			return false
		}
		r.acked = append(r.acked, text)
	}
	return true
}

// awaitWritable waits until a node accepts changes or time is up.
func (r *damageRound) awaitWritable(n *process) bool {
	able := false
	r.until(func() bool {
		says := n.ask("standing")
		able = says == "leads" || says == "follows"
		return able || says == ""
	})
	return able
}

// checkDisks stops all nodes and compares their logs: every node that kept running has all acknowledged records, and
// no two histories differ.
func (r *damageRound) checkDisks() {
	r.until(func() bool {
		return !slices.ContainsFunc(r.nodes, func(n *process) bool {
			return n != nil && !strings.HasPrefix(n.ask("log"), fmt.Sprint(len(r.acked), " "))
		})
	})
	var longest []string
	for i, n := range r.nodes {
		able := n != nil && r.awaitWritable(n)
		r.stop(i)
		log := r.recordsOnDisk(i)
		missing := slices.DeleteFunc(slices.Clone(r.acked), func(record string) bool { return slices.Contains(log, record) })
		if able && len(missing) > 0 {
			r.t.Errorf("n%d goes on with %d records and without %d that were acknowledged, the first is %q", i+1, len(log), len(missing), missing[0])
		}
		if common := min(len(log), len(longest)); !slices.Equal(log[:common], longest[:common]) {
			r.t.Errorf("two histories: %q and %q", log, longest)
		}
		if len(log) > len(longest) {
			longest = log
		}
	}
}

// recordsOnDisk returns the local log of a stopped node.
func (r *damageRound) recordsOnDisk(i int) (records []string) {
	log, err := wal.Open(r.configs[i].Dir, wal.Options{ReserveBytes: -1, Clock: realClock})
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	if err := log.Read(log.First(), func(_ uint64, record []byte) error {
		records = append(records, string(record))
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return records
}

func (r *damageRound) stop(i int) {
	if n := r.nodes[i]; n != nil {
		r.nodes[i] = nil
		n.end()
	}
}
