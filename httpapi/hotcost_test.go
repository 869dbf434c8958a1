package httpapi

import (
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

	"github.com/valyala/fasthttp"
)

// acceptedCosts is the file of accepted costs, from this folder.
const acceptedCosts = "../.ci/baseline.txt"

// hotCost is what is wanted of TestHotCost: check, accept or show. "" is nothing: valgrind takes its time.
func hotCost() string { return os.Getenv("HOTCOST") }

// TestHotCost counts what each question of the hot path costs. make bench-check holds that against what is accepted, make
// bench-accept accepts it, and make bench-instructions shows it beside what the bare server takes.
func TestHotCost(t *testing.T) {
	order := hotCost()
	if order == "" {
		t.Skip("only for make bench-check, bench-accept and bench-instructions")
	}
	names := strings.Fields(os.Getenv("REQUESTS"))
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(hotRequests("")))
	}
	for _, name := range names {
		if hotRequests("")[name] == nil {
			t.Fatalf("REQUESTS names %q; there are %q", name, slices.Sorted(maps.Keys(hotRequests(""))))
		}
	}
	switch order {
	case "check":
		checkCosts(t, measureCosts(t, names))
	case "accept":
		acceptCosts(t, measureCosts(t, slices.Sorted(maps.Keys(hotRequests("")))))
	case "show":
		showCosts(t, names)
	default:
		t.Fatalf("HOTCOST is %q, want check, accept or show", order)
	}
}

func checkCosts(t *testing.T, found *costList) {
	t.Helper()
	file, err := os.Open(acceptedCosts)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	accepted, err := readCosts(file)
	if err != nil {
		t.Fatalf("%s: %v", acceptedCosts, err)
	}
	say(t, "%-14s %12s %12s %9s %11s\n", "request", "accepted", "found", "change", "allocations")
	for _, name := range slices.Sorted(maps.Keys(found.costs)) {
		was, is := accepted.costs[name], found.costs[name]
		say(t, "%-14s %12d %12d %9s %11d\n", name, was.instructions, is.instructions, percent(permille(is.instructions, max(1, was.instructions))), is.allocations)
	}
	problems, notes := accepted.judge(found)
	for _, note := range notes {
		say(t, "note: %s\n", note)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
	if os.Getenv("REQUESTS") == "" {
		for _, name := range accepted.missing(found) {
			t.Errorf("%s has an accepted cost and is not measured any more; make bench-accept", name)
		}
	}
}

func acceptCosts(t *testing.T, found *costList) {
	t.Helper()
	var text strings.Builder
	if err := found.write(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(acceptedCosts, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	say(t, "%s", text.String())
}

func showCosts(t *testing.T, names []string) {
	t.Helper()
	sides := []string{"node", "bare"}
	var runs []hotRun
	for _, name := range names {
		for _, side := range sides {
			runs = append(runs, hotRun{name: name, side: side})
		}
	}
	counts := countAll(t, runs)
	say(t, "%-14s %8s %8s %6s\n", "request", "node", "bare", "ratio")
	for i, name := range names {
		node, bare := counts[2*i], counts[2*i+1]
		say(t, "%-14s %8d %8d %3d.%02d\n", name, node, bare, node/bare, node*100/bare%100)
	}
}

// say writes a line where whoever called make sees it.
func say(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(os.Stdout, format, args...); err != nil {
		t.Fatal(err)
	}
}

// measureCosts counts the node's instructions and allocations for each question.
func measureCosts(t *testing.T, names []string) *costList {
	t.Helper()
	var runs []hotRun
	for _, name := range names {
		runs = append(runs, hotRun{name: name, side: "node"})
	}
	found := &costList{release: runtime.Version(), counter: counter(t), costs: map[string]cost{}}
	counts := countAll(t, runs)
	server, key := newNodeServer(t)
	for i, name := range names {
		found.costs[name] = cost{counts[i], hotAllocations(t, server.http, hotRequests(key)[name])}
	}
	return found
}

// hotAllocations is how often one of many requests over a connection allocates.
func hotAllocations(t testing.TB, server *fasthttp.Server, request []byte) int {
	t.Helper()
	const many = 1000
	whole := testing.AllocsPerRun(5, func() {
		if err := server.ServeConn(newHotConn(request, many)); err != nil {
			t.Fatal(err)
		}
	})
	return (int(whole) + many/2) / many
}

// hotRun is what a process under valgrind answers. waste is what is planted in its handler.
type hotRun struct {
	name, side string
	waste      int
}

// hotShort and hotLong are how many requests two processes answer: their difference is free of the start.
const hotShort, hotLong = 500, 10_500

// countAll counts the instructions of one request of each run, on all cores: a count does not depend on who else works.
func countAll(t *testing.T, runs []hotRun) []int {
	t.Helper()
	counts := make([]int, 2*len(runs))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for i := range next {
				counts[i] = countProcess(t, runs[i/2], []int{hotShort, hotLong}[i%2])
			}
		})
	}
	for i := range counts {
		next <- i
	}
	close(next)
	workers.Wait()
	if t.Failed() {
		t.FailNow()
	}
	each := make([]int, len(runs))
	for i := range runs {
		each[i] = (counts[2*i+1] - counts[2*i]) / (hotLong - hotShort)
	}
	return each
}

var instructionsRead = regexp.MustCompile(`I\s+refs:\s+([0-9,]+)`)

// countProcess counts the instructions of a process that answers so many requests.
func countProcess(t *testing.T, run hotRun, requests int) int {
	t.Helper()
	command := exec.CommandContext(t.Context(), "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
		os.Args[0], "-test.run=^TestCount$")
	order := fmt.Sprintf("HOTPATH=%s/%s/%d/%d", run.name, run.side, requests, run.waste)
	command.Env = append(os.Environ(), order, "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	out, err := command.CombinedOutput()
	found := instructionsRead.FindSubmatch(out)
	if err != nil || found == nil {
		t.Errorf("%s: %v: %s", order, err, out)
		return 0
	}
	count, err := strconv.Atoi(strings.ReplaceAll(string(found[1]), ",", ""))
	if err != nil {
		t.Error(err)
	}
	return count
}

// counter is what counts here.
func counter(t *testing.T) string {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "valgrind", "--version").Output()
	if err != nil {
		t.Fatalf("valgrind: %v", err)
	}
	words := strings.Fields(string(version))
	processor, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	flags := strings.Fields(string(processor))
	for _, feature := range []string{"aes", "avx2", "bmi2", "erms", "fma", "popcnt", "sse4_2"} {
		if slices.Contains(flags, feature) {
			words = append(words, feature)
		}
	}
	return strings.Join(words, " ")
}

// TestHotCost_Control: four per cent more work in the handler fails the check, two do not.
func TestHotCost_Control(t *testing.T) {
	if hotCost() != "check" {
		t.Skip("only for make bench-check")
	}
	const rounds = 1000
	plain := countAll(t, []hotRun{{"best", "node", 0}, {"best", "node", rounds}})
	rise := func(percent int) int { return plain[0] * percent / 100 * rounds / (plain[1] - plain[0]) }
	planted := countAll(t, []hotRun{{"best", "node", rise(2)}, {"best", "node", rise(4)}})
	accepted := listOf(map[string]cost{"best": {plain[0], 0}})
	for i, fails := range []bool{false, true} {
		problems, _ := accepted.judge(listOf(map[string]cost{"best": {planted[i], 0}}))
		say(t, "control: a rise of %s: %q\n", percent(permille(planted[i], plain[0])), problems)
		if fails != (len(problems) > 0) {
			t.Errorf("%d instructions, planted %d: %q", plain[0], planted[i], problems)
		}
	}
}

// wasted works so many rounds for nothing: the rise that the control plants.
//
//go:noinline
func wasted(rounds int) int {
	sum := 0
	for i := range rounds {
		sum ^= i
	}
	return sum
}

// wasteful is a handler with a planted rise.
func wasteful(handler fasthttp.RequestHandler, rounds int) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if wasted(rounds) >= 0 { // always; the compiler does not know
			handler(ctx)
		}
	}
}

// TestCount answers a number of requests and ends, for whoever counts its instructions: HOTPATH=best/node/10500/0. The last
// number is what is planted.
func TestCount(t *testing.T) {
	order := strings.Split(os.Getenv("HOTPATH"), "/")
	if len(order) != 4 {
		t.Skip("only for TestHotCost")
	}
	count, err := strconv.Atoi(order[2])
	if err != nil {
		t.Fatal(err)
	}
	waste, err := strconv.Atoi(order[3])
	if err != nil {
		t.Fatal(err)
	}
	request, pair := hotPair(t, order[0])
	server := pair[order[1]]
	if waste > 0 {
		server.Handler = wasteful(server.Handler, waste)
	}
	if err := server.ServeConn(newHotConn(request, count)); err != nil {
		t.Fatal(err)
	}
}
