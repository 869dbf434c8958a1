//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		if errors.Is(err, errNotAnswered) {
			os.Exit(1)
		}
		os.Exit(2)
	}
}

// run has three uses: the subcommand bare; with -against a load on a running node; otherwise the performance goals.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) > 0 && args[0] == bareName {
		return runBare(ctx, args[1:], out)
	}
	s, err := readSettings(args, progress)
	if err != nil {
		return err
	}
	if s.target != "" {
		return s.runLoad(ctx, out)
	}
	return s.measureGoals(ctx, out)
}

// settings are the parsed command line.
type settings struct {
	runOptions
	tasard string     // path of the node's program
	goals  []scenario // performance goals to measure, which have IDs such as F1

	target string // address of the running node, as host:port; "" without -against
	mix    string
	keys   string // path of a file with API keys
	rate   float64
}

const usage = `bench measures a whole node under load against baselines in the same run, and reports which goals it meets.

  bench -tasard ./tasard                        all goals, about 15 minutes
  bench -tasard ./tasard -goals F1,F12 -rounds 5   two of them, roughly
  bench -against http://127.0.0.1:8080 -mix all -rate 5000
                                                a load on a running node: latency at 5,000 requests a second
  bench -against http://127.0.0.1:8080 -keys keys.txt -mix best
                                                its capacity, with the keys in a file, one per line

It needs Linux and two cores: servers run on the first, the load on the second. Figures are medians of ratios within one
run; absolute times mean little on a shared machine. With -against the exit code is 1 if requests were refused or lost;
after any other error it is 2.

`

// readSettings parses and checks the command line.
func readSettings(args []string, out io.Writer) (*settings, error) {
	s, list := &settings{}, ""
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		_, _ = io.WriteString(out, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&s.tasard, "tasard", "", "`path` of the node's program")
	flags.StringVar(&list, "goals", "", "`list` of goals such as F1,F12; \"\" is all")
	flags.IntVar(&s.Rounds, "rounds", 15, "`number` of rounds of a comparison")
	flags.DurationVar(&s.Measure, "measure", 200*time.Millisecond, "measured `time` of each side in a round")
	flags.DurationVar(&s.Warmup, "warmup", 100*time.Millisecond, "`time` before that, not counted")
	flags.IntVar(&s.Connections, "connections", 64, "`number` of connections")
	flags.StringVar(&s.target, "against", "", "`URL` of a running node: put a load on it instead of measuring goals")
	flags.StringVar(&s.mix, "mix", mixAll, "with -against: `name` of the requests: "+strings.Join(slices.Sorted(maps.Keys(mixes())), ", "))
	flags.StringVar(&s.keys, "keys", "", "with -against: `file` of keys, one per line")
	flags.Float64Var(&s.rate, "rate", 0, "with -against: `number` of requests a second, each measured from its due time; 0 is as many as possible")
	err := flags.Parse(args)
	if err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unknown argument %q; see -help", flags.Arg(0))
	case s.Rounds < 1 || s.Connections < 1 || s.Measure <= 0 || s.Warmup < 0 || !(s.rate >= 0):
		return nil, errors.New("-rounds, -connections and -measure must be more than 0, -warmup and -rate not less")
	case mixes()[s.mix] == nil:
		return nil, fmt.Errorf("-mix %q: unknown mix", s.mix)
	case s.target != "":
		address, isHTTP := strings.CutPrefix(strings.TrimSuffix(s.target, "/"), "http://")
		if _, _, err := net.SplitHostPort(address); err != nil || !isHTTP {
			return nil, fmt.Errorf("-against %s: want http://host:port", s.target)
		}
		s.target = address
	default:
		if s.goals, err = selectGoals(list); err == nil && s.tasard == "" {
			err = errors.New("-tasard is missing: name the node's program; make build makes ./tasard")
		}
	}
	return s, err
}

// measureGoals measures and prints the figures of the selected goals.
func (s *settings) measureGoals(ctx context.Context, out io.Writer) (err error) {
	r, err := newRunner(s.runOptions, s.tasard)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	_, _ = fmt.Fprintf(out, "%s, %s\n%d rounds of %v after %v of warm-up, %d connections, %d accounts. In brackets: 95 %% interval of the median.\nFlags of tasard serve: %s\n\n| | | Result | Goal | Medians |\n|---|---|---|---|---|\n",
		thisMachine(), time.Now().UTC().Format(time.DateOnly), s.Rounds, s.Measure, s.Warmup, s.Connections, accountCount, strings.Join(measuredFlags(), " "))
	for i := range s.goals {
		if err := r.measureGoal(ctx, &s.goals[i], out); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "\nMissed: %s.\n", cmp.Or(strings.Join(r.missed, ", "), "none"))
	return err
}

// thisMachine describes the machine.
func thisMachine() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // without it the processor is not named
	_, cpu, _ := strings.Cut(string(text), "model name")
	cpu, _, _ = strings.Cut(cpu, "\n")
	return fmt.Sprintf("%s, %d cores, %s", strings.Trim(cpu, "\t :"), runtime.NumCPU(), runtime.Version())
}

// errNotAnswered means that requests of a load were refused or lost.
var errNotAnswered = errors.New("not answered with status 200")

// failuresPercentMax is the maximum percentage of failed requests at which latencies are printed. With more failures
// the latencies of the other requests would not describe the node under this load.
const failuresPercentMax = 1

// runLoad generates a load on a running node and prints the results.
func (s *settings) runLoad(ctx context.Context, out io.Writer) error {
	var keys []string
	if s.keys != "" {
		text, err := os.ReadFile(s.keys)
		if err != nil {
			return err
		}
		if keys = strings.Fields(string(text)); len(keys) == 0 {
			return fmt.Errorf("%s has no keys", s.keys)
		}
	}
	g := &generator{
		Address: s.target, Requests: newMix(s.target, keys, mixes()[s.mix]), Connections: s.Connections, Rate: s.rate,
		Warmup: s.Warmup, Measure: s.Measure,
	}
	if err := g.run(ctx); err != nil {
		return err
	}
	return g.results.report(out)
}

// report prints the results of a load. Its error says how many requests failed, and why.
func (r *results) report(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%d answers in %s, %.0f a second\n", r.Responses, r.Elapsed.Round(time.Millisecond), float64(r.Responses)/r.Elapsed.Seconds())
	fmt.Fprintf(&text, "the load generator used %.0f %% of a core; near 100 %% it is the limit, not the node\n", 100*r.CPU.Seconds()/r.Elapsed.Seconds())
	var causes []string
	for _, status := range slices.Sorted(maps.Keys(r.Statuses)) {
		fmt.Fprintf(&text, "  %d: %d\n", status, r.Statuses[status])
		hint := ""
		if status == http.StatusTooManyRequests {
			hint = " (quotas: use -keys, or start the node with --limits=off)"
		}
		if status != http.StatusOK {
			causes = append(causes, fmt.Sprintf("%d with %d%s", r.Statuses[status], status, hint))
		}
	}
	if r.Lost > 0 {
		fmt.Fprintf(&text, "  lost: %d\n", r.Lost)
		causes = append(causes, fmt.Sprintf("%d lost (connections were closed, or no answer came: --connections-per-address 0 allows more than 128)", r.Lost))
	}
	failures := r.Intended - r.Statuses[http.StatusOK]
	if failures*100 <= r.Intended*failuresPercentMax {
		for _, percentile := range []float64{50, 90, 99, 99.9, 99.99, 100} {
			fmt.Fprintf(&text, "  %6.2f %%  %s\n", percentile, time.Duration(r.Latency.ValueAtPercentile(percentile)).Round(time.Microsecond/10))
		}
	}
	if _, err := io.WriteString(out, text.String()); err != nil || failures == 0 {
		return err
	}
	return fmt.Errorf("%d of %d requests were %w: %s", failures, r.Intended, errNotAnswered, strings.Join(causes, ", "))
}
