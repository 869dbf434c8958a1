package main

import (
	"flag"
	"fmt"
	"io"
	"time"
)

// settings are what the command line says.
type settings struct {
	tasard, out, goals string
	profile            string
	strict             bool
	options            runOptions

	against *address
	mix     string
	keys    string // file
	rate    float64
}

const usage = `bench measures a whole node under load, beside yardsticks in the same run, and tells which goals it meets.

  bench -tasard ./tasard                        all goals, about 15 minutes
  bench -tasard ./tasard -goals F1,F12 -quick   two of them, roughly
  bench -against http://127.0.0.1:8080 -mix all -rate 5000
                                                a load on a node that runs: latency at 5,000 requests a second
  bench -against http://127.0.0.1:8080 -keys keys.txt -mix best
                                                what it can do, in the names of the keys in a file, one a line

It needs Linux and two cores: servers run on the first, the load on the second. Figures of comparisons are medians of ratios
within one run; times by themselves mean little on a machine that does other things too.

`

// readSettings reads the command line.
func readSettings(args []string, out io.Writer) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		_, _ = io.WriteString(out, usage)
		flags.PrintDefaults()
	}
	quick := flags.Bool("quick", false, "fewer and shorter rounds: for a look, not for a verdict")
	flags.StringVar(&s.tasard, "tasard", "", "`path` of the node's program")
	flags.StringVar(&s.out, "out", "bench-report", "`directory` for the reports")
	flags.StringVar(&s.goals, "goals", "", "`list` of goals such as F1,F12; all of them without it")
	flags.StringVar(&s.profile, "profile", "", "`directory` for a CPU profile of the node under each goal of F1 to F3")
	flags.BoolVar(&s.strict, "strict", false, "end with 1 when a goal is not met")
	flags.IntVar(&s.options.Rounds, "rounds", 15, "`number` of rounds of a comparison")
	flags.DurationVar(&s.options.Measure, "measure", time.Second, "`time` that is measured of each side in a round")
	flags.DurationVar(&s.options.Warmup, "warmup", 200*time.Millisecond, "`time` before it that is not counted")
	flags.IntVar(&s.options.Connections, "connections", 64, "`number` of connections")
	flags.IntVar(&s.options.Accounts, "accounts", 128, "`number` of accounts in whose names is asked")
	flags.Uint64Var(&s.options.Seed, "seed", 1, "`number` from which requests are drawn: the same one draws the same")
	flags.Func("against", "`URL` of a node that runs: put a load on it, and measure no goals", func(text string) (err error) {
		s.against, err = readAddress(text)
		return err
	})
	flags.StringVar(&s.mix, "mix", mixAll, "with -against: `name` of what is asked: all, best, full, gzip, convert, rates, history, currencies, institutions, institution")
	flags.StringVar(&s.keys, "keys", "", "with -against: `file` of keys, one a line")
	flags.Float64Var(&s.rate, "rate", 0, "with -against: `number` of requests a second, each timed from its intended moment; 0 is as many as it can")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if *quick {
		s.options.Rounds, s.options.Measure = min(s.options.Rounds, 5), min(s.options.Measure, 400*time.Millisecond)
	}
	return s, s.check(flags.Args())
}

// check refuses what can't be measured.
func (s *settings) check(rest []string) error {
	o := &s.options
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unknown argument %q; see -help", rest[0])
	case o.Rounds < 1 || o.Rounds > 1000:
		return fmt.Errorf("-rounds %d: want 1 to 1000", o.Rounds)
	case o.Accounts < 1 || o.Accounts > 100_000:
		return fmt.Errorf("-accounts %d: want 1 to 100,000", o.Accounts)
	case mixes(benchInstitution)[s.mix] == nil:
		return fmt.Errorf("-mix %q: there is no such mix", s.mix)
	}
	return nil
}
