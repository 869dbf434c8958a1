//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
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
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		if errors.Is(err, errNotAnswered) {
			os.Exit(1)
		}
		os.Exit(2)
	}
}

// run executes a subcommand. Without one, it measures which performance goals a node meets. With -against, it puts a
// load on a running node instead.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case bareName:
			return runBare(ctx, args[1:], out)
		}
	}
	s, err := readSettings(args, progress)
	if err != nil {
		return err
	}
	if s.target != "" {
		return s.runLoad(ctx, out)
	}
	return s.measureGoals(ctx, out, progress)
}

// Largest values of flags.
const (
	connectionsMax = 10_000
	rateMax        = 1_000_000
)

// settings are the parsed command line.
type settings struct {
	tasard  string     // path of the node's program
	goals   []scenario // performance goals to measure, which have IDs such as F1
	options runOptions

	target string // address of the running node, as host:port; "" without -against
	mix    string
	keys   string // path of a file with API keys
	rate   float64
}

const usage = `bench measures a whole node under load against baselines in the same run, and reports which goals it meets.

  bench -tasard ./tasard                        all goals, about 15 minutes
  bench -tasard ./tasard -goals F1,F12 -quick   two of them, roughly
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
	s, list, o := &settings{}, "", runOptions{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		_, _ = io.WriteString(out, usage)
		flags.PrintDefaults()
	}
	quick := flags.Bool("quick", false, "fewer rounds: rough figures")
	flags.StringVar(&s.tasard, "tasard", "", "`path` of the node's program")
	flags.StringVar(&list, "goals", "", "`list` of goals such as F1,F12; \"\" is all")
	flags.IntVar(&o.Rounds, "rounds", 15, "`number` of rounds of a comparison")
	flags.DurationVar(&o.Measure, "measure", 200*time.Millisecond, "measured `time` of each side in a round")
	flags.DurationVar(&o.Warmup, "warmup", 100*time.Millisecond, "`time` before that, not counted")
	flags.IntVar(&o.Connections, "connections", 64, "`number` of connections")
	flags.IntVar(&o.Accounts, "accounts", 48, "`number` of accounts whose keys are used")
	flags.StringVar(&s.target, "against", "", "`URL` of a running node: put a load on it instead of measuring goals")
	flags.StringVar(&s.mix, "mix", mixAll, "with -against: `name` of the requests: "+strings.Join(slices.Sorted(maps.Keys(mixes())), ", "))
	flags.StringVar(&s.keys, "keys", "", "with -against: `file` of keys, one per line")
	flags.Float64Var(&s.rate, "rate", 0, "with -against: `number` of requests a second, each measured from its due time; 0 is as many as possible")
	err := flags.Parse(args)
	if err != nil {
		return nil, err
	}
	if *quick {
		o.Rounds = min(o.Rounds, 5)
	}
	s.options = o
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unknown argument %q; see -help", flags.Arg(0))
	case o.Rounds < 1 || o.Rounds > 1000:
		return nil, fmt.Errorf("-rounds %d: want 1 to 1000", o.Rounds)
	case o.Accounts < 1 || o.Accounts > 100_000:
		return nil, fmt.Errorf("-accounts %d: want 1 to 100,000", o.Accounts)
	case o.Connections < 1 || o.Connections > connectionsMax:
		return nil, fmt.Errorf("-connections %d: want 1 to %d", o.Connections, connectionsMax)
	case !(s.rate >= 0 && s.rate <= rateMax):
		return nil, fmt.Errorf("-rate %v: want 0 (as many as it can) to %d", s.rate, rateMax)
	case o.Measure <= 0 || o.Warmup < 0:
		return nil, fmt.Errorf("-measure %v, -warmup %v: want more than 0, and 0 or more", o.Measure, o.Warmup)
	case mixes()[s.mix] == nil:
		return nil, fmt.Errorf("-mix %q: unknown mix", s.mix)
	}
	if s.target != "" {
		s.target, err = readAddress(s.target)
	} else if s.goals, err = selectGoals(list); err == nil && s.tasard == "" {
		err = errors.New("-tasard is missing: name the node's program; make build makes ./tasard")
	}
	return s, err
}

// readAddress returns the host:port of a URL http://host:port. The default port is 80.
func readAddress(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return "", fmt.Errorf("-against %s: want http://host:port", text)
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "80"), nil
	}
	return u.Host, nil
}

// measureGoals measures and prints the figures of the selected goals.
func (s *settings) measureGoals(ctx context.Context, out, progress io.Writer) (err error) {
	r, err := newRunner(s.options, s.tasard, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	o := &s.options
	_, _ = fmt.Fprintf(out, "%s, %s\n%d rounds of %v after %v of warm-up, %d connections, %d accounts. In brackets: 95 %% interval of the median.\nFlags of tasard serve: %s\n\n| | | Result | Goal | Medians |\n|---|---|---|---|---|\n",
		thisMachine(), time.Now().UTC().Format(time.DateOnly), o.Rounds, o.Measure, o.Warmup, o.Connections, o.Accounts, strings.Join(measuredFlags(), " "))
	for i := range s.goals {
		if err := r.measureGoal(ctx, &s.goals[i], out); err != nil {
			return err
		}
	}
	_, err = io.WriteString(out, r.summary())
	return err
}

// thisMachine describes the machine.
func thisMachine() string {
	cpu := "unknown processor"
	text, _ := os.ReadFile("/proc/cpuinfo") // without it the processor stays unknown
	if _, rest, found := strings.Cut(string(text), "model name"); found {
		rest, _, _ = strings.Cut(rest, "\n")
		cpu = strings.Trim(rest, "\t :")
	}
	return fmt.Sprintf("%s, %d cores, %s", cpu, runtime.NumCPU(), runtime.Version())
}

// readKeys reads a file of API keys. It returns no keys if path is "".
func readKeys(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	keys := strings.Fields(string(text))
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("%s has none", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	return keys, nil
}
