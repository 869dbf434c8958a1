package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	// instructionsFile holds the accepted counts, from this folder.
	instructionsFile = "../.ci/costs.json"
	// instructionsRiseMax is how much more instructions a request may take than is accepted, in thousandths. Counts
	// repeat within 5.
	instructionsRiseMax = 30
	// Two processes answer so many requests: the difference has no start in it.
	countedShort, countedLong = 500, 10_500
)

// instructionList is what each request takes, and what that depends on besides the program.
type instructionList struct {
	Go       string         `json:"go"`      // another release makes other instructions
	Counter  string         `json:"counter"` // valgrind, and the features of the processor that it shows to programs
	Requests map[string]int `json:"requests"`
}

// TestInstructions counts the instructions of the hot path: INSTRUCTIONS=check holds them against what is accepted,
// accept writes that file, show shows them beside the bare server's. It is an extra: where the machine can't count,
// one line says so.
func TestInstructions(t *testing.T) {
	order := os.Getenv("INSTRUCTIONS")
	if order == "" {
		t.Skip("only for make bench-check, bench-accept and bench-instructions")
	}
	if err := canCount(t); err != nil {
		printf(t, "instructions are not counted here: %v\n", err)
		return
	}
	names := slices.Sorted(maps.Keys(benchedRequests("")))
	switch order {
	case "check":
		checkInstructions(t, countNode(t, names))
	case "accept":
		text, err := json.MarshalIndent(countNode(t, names), "", "  ")
		if err := errors.Join(err, os.WriteFile(instructionsFile, append(text, '\n'), 0o600)); err != nil {
			t.Fatal(err)
		}
	case "show":
		var runs []countedRun
		for _, name := range names {
			runs = append(runs, countedRun{name: name, side: "node"}, countedRun{name: name, side: "bare"})
		}
		counts := countAll(t, runs)
		printf(t, "%-14s %8s %8s %6s\n", "request", "node", "bare", "ratio")
		for i, name := range names {
			node, bare := counts[2*i], counts[2*i+1]
			printf(t, "%-14s %8d %8d %3d.%02d\n", name, node, bare, node/bare, node*100/bare%100)
		}
	default:
		t.Fatalf("INSTRUCTIONS is %q, want check, accept or show", order)
	}
}

func checkInstructions(t *testing.T, found *instructionList) {
	t.Helper()
	text, err := os.ReadFile(instructionsFile)
	accepted := &instructionList{}
	if err := errors.Join(err, json.Unmarshal(text, accepted)); err != nil {
		t.Fatal(err)
	}
	if accepted.Go != found.Go || accepted.Counter != found.Counter {
		printf(t, "instructions are not compared: accepted with %s, %s; here are %s, %s\n", accepted.Go, accepted.Counter, found.Go, found.Counter)
		return
	}
	printf(t, "%-14s %12s %12s\n", "request", "accepted", "instructions")
	for _, name := range slices.Sorted(maps.Keys(found.Requests)) {
		was, is := accepted.Requests[name], found.Requests[name]
		printf(t, "%-14s %12d %12d\n", name, was, is)
		if (is-was)*1000 > instructionsRiseMax*was {
			t.Errorf("%s: %d instructions, %d are accepted; mend it, or make bench-accept and say in the commit why", name, is, was)
		}
	}
}

// printf writes a line where the caller of make sees it.
func printf(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(os.Stdout, format, args...); err != nil {
		t.Fatal(err)
	}
}

func countNode(t *testing.T, names []string) *instructionList {
	t.Helper()
	var runs []countedRun
	for _, name := range names {
		runs = append(runs, countedRun{name: name, side: "node"})
	}
	version, err := exec.CommandContext(t.Context(), "valgrind", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := &instructionList{Go: runtime.Version(), Counter: strings.TrimSpace(string(version)), Requests: map[string]int{}}
	processor, _ := os.ReadFile("/proc/cpuinfo") // without it there are no features
	for _, feature := range []string{"aes", "avx2", "bmi2", "erms", "fma", "popcnt", "sse4_2"} {
		if slices.Contains(strings.Fields(string(processor)), feature) {
			found.Counter += " " + feature
		}
	}
	for i, count := range countAll(t, runs) {
		found.Requests[names[i]] = count
	}
	return found
}

// countedRun is what a process answers.
type countedRun struct{ name, side string }

// countAll counts the instructions of one request of each run, two at a time: a count does not depend on what else
// runs.
func countAll(t *testing.T, runs []countedRun) []int {
	t.Helper()
	each := make([]int, len(runs))
	var waiting sync.WaitGroup
	places := make(chan bool, runtime.NumCPU())
	for i, run := range runs {
		waiting.Go(func() {
			places <- true
			defer func() { <-places }()
			short, err := countProcess(t, run, countedShort)
			long, err2 := countProcess(t, run, countedLong)
			if err := errors.Join(err, err2); err != nil {
				t.Error(err)
			}
			each[i] = (long - short) / (countedLong - countedShort)
		})
	}
	waiting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return each
}

// canCount tells why valgrind counts nothing here: it is not installed, or does not know the processor.
func canCount(t *testing.T) error {
	t.Helper()
	_, err := countProcess(t, countedRun{name: "best", side: "node"}, 1)
	return err
}

var instructionsRead = regexp.MustCompile(`I\s+refs:\s+([0-9,]+)`)

func countProcess(t *testing.T, run countedRun, requests int) (int, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
		os.Args[0], "-test.run=^TestCounted$")
	order := fmt.Sprintf("COUNTED=%s/%s/%d", run.name, run.side, requests)
	command.Env = append(os.Environ(), order, "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	out, err := command.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %.300s", order, err, out)
	}
	found := instructionsRead.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("%s: valgrind says %.300s", order, out)
	}
	return strconv.Atoi(strings.ReplaceAll(string(found[1]), ",", ""))
}

// TestCounted answers a number of requests below valgrind: COUNTED=best/node/10500.
func TestCounted(t *testing.T) {
	order := strings.Split(os.Getenv("COUNTED"), "/")
	if len(order) != 3 {
		t.Skip("only for TestInstructions")
	}
	count, err := strconv.Atoi(order[2])
	ok(t, err)
	request, pair := nodeAndBare(t, order[0])
	if err := pair[order[1]](newBenchedConn(request, count)); err != nil {
		t.Fatal(err)
	}
}
