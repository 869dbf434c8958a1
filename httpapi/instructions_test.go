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
// accept writes that file. It is an extra: where the machine can't count, one line says so.
func TestInstructions(t *testing.T) {
	order := os.Getenv("INSTRUCTIONS")
	if order == "" {
		t.Skip("only for make bench-check and bench-accept")
	}
	if _, err := countProcess(t, "best", 1); err != nil { // valgrind is not installed, or does not know the processor
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
	default:
		t.Fatalf("INSTRUCTIONS is %q, want check or accept", order)
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
	for i, count := range countAll(t, names) {
		found.Requests[names[i]] = count
	}
	return found
}

// countAll counts the instructions of each request, two at a time: a count does not depend on what else runs.
func countAll(t *testing.T, names []string) []int {
	t.Helper()
	each := make([]int, len(names))
	var waiting sync.WaitGroup
	places := make(chan bool, runtime.NumCPU())
	for i, name := range names {
		waiting.Go(func() {
			places <- true
			defer func() { <-places }()
			short, err := countProcess(t, name, countedShort)
			long, err2 := countProcess(t, name, countedLong)
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

var instructionsRead = regexp.MustCompile(`I\s+refs:\s+([0-9,]+)`)

func countProcess(t *testing.T, name string, requests int) (int, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
		os.Args[0], "-test.run=^TestCounted$")
	order := fmt.Sprintf("COUNTED=%s/%d", name, requests)
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

// TestCounted answers a number of requests below valgrind: COUNTED=best/10500.
func TestCounted(t *testing.T) {
	name, number, counted := strings.Cut(os.Getenv("COUNTED"), "/")
	if !counted {
		t.Skip("only for TestInstructions")
	}
	server, key := newNodeServer(t)
	if err := server.serveConn(newBenchedConn(benchedRequests(key)[name], must(strconv.Atoi(number)))); err != nil {
		t.Fatal(err)
	}
}
