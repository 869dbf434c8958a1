package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/node"
)

const (
	findingOK   = "OK"
	findingWarn = "WARN" // the node works, but something needs attention
	findingFail = "FAIL" // something must be repaired
)

type finding struct {
	Level   string `json:"level"`
	Check   string `json:"check"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
}

// doctor has the state of one examination.
type doctor struct {
	*process.Process
	settings *command.Serve
	network  bool // connect to the hosts of sources
	findings []finding
}

// New returns the command tasard doctor.
func New(p *process.Process) *cobra.Command {
	quiet := *p // its log is discarded, because the lines would mix with the findings
	quiet.Stderr = io.Discard
	d, asJSON := &doctor{Process: &quiet, settings: command.Default()}, false
	cmd := command.Spec{
		Use:   "doctor --data DIR",
		Short: "Check everything around a node",
		Long: `doctor checks what is around a node: settings, data directory and its owner, disk, log, clock, mail server, sources. Give
it the flags of serve; a node may be running or not. The first line sums up; problems come first and say what to do. The
exit code is 1 if a line begins with FAIL.

It changes nothing. It logs in to the mail server, asks whether it accepts the sender, and sends no e-mail. With
--network it connects to the host of each source and sends no request; tasard sources check does.`,
		Example: `  tasard doctor --config /etc/tasard/tasard.toml
  tasard doctor --data ./data --network --json`,
		Settings: func(flags *pflag.FlagSet) { command.Add(flags, d.settings) },
		Flags: func(flags *pflag.FlagSet) {
			command.BoolFlag(flags, &d.network, "network", "connect to the host of each source")
			command.BoolFlag(flags, &asJSON, "json", "print JSON")
		},
	}.Command(p)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { // replaces the RunE of Spec.Command, which would not report all problems of settings
		if err := errors.Join(command.Resolve(cmd, p.Environ), command.RequireData(cmd)); err != nil {
			return err
		}
		return d.examine(cmd.Context(), p.Stdout, asJSON)
	}
	return cmd
}

func (d *doctor) examine(ctx context.Context, out io.Writer, asJSON bool) error {
	for _, check := range []func(context.Context){d.checkSettings, d.checkDirectory, d.checkDisk, d.checkLog, d.checkMail, d.checkSources, d.checkClock} {
		check(ctx)
		if ctx.Err() != nil {
			return exit.Errorf(exit.Interrupted, "interrupted while examining")
		}
	}
	levels := []string{findingFail, findingWarn, findingOK}
	slices.SortStableFunc(d.findings, func(a, b finding) int { return slices.Index(levels, a.Level) - slices.Index(levels, b.Level) })
	worst := d.findings[0].Level
	if err := d.print(out, worst, asJSON); err != nil {
		return err
	}
	if worst == findingFail {
		return exit.Errorf(exit.CheckFailed, "there are faults: see the lines that begin with FAIL")
	}
	return nil
}

// add adds a finding. advice is what the operator should do; it may be "".
func (d *doctor) add(level, check, advice, format string, args ...any) {
	d.findings = append(d.findings, finding{level, check, fmt.Sprintf(format, args...), advice})
}

func (d *doctor) addLines(level, check string, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		d.add(level, check, "", "%s", line)
	}
}

func (d *doctor) print(out io.Writer, worst string, asJSON bool) error {
	answer := struct {
		Worst    string    `json:"worst"`
		Findings []finding `json:"findings"`
	}{worst, d.findings}
	return terminal.WriteAnswer(out, asJSON, answer, func() {
		var sums []string
		for _, level := range []struct{ level, noun string }{{findingFail, "fault"}, {findingWarn, "warning"}} {
			var checks []string
			for _, f := range d.findings {
				if f.Level == level.level {
					checks = append(checks, f.Check)
				}
			}
			if len(checks) > 0 {
				sums = append(sums, fmt.Sprintf("%s (%s)", terminal.Plural(len(checks), level.noun), strings.Join(slices.Compact(checks), ", ")))
			}
		}
		terminal.Say(out, "%s.\n\n", cmp.Or(strings.Join(sums, " and "), "All is well"))
		terminal.Table(out, "", d.findings, func(f *finding) []any {
			return []any{f.Level, f.Check, strings.TrimSuffix(f.Message+"; "+f.Advice, "; ")}
		})
	})
}

// config returns the configuration with which serve would open the node.
func (d *doctor) config() node.Config {
	return command.NodeConfig(d.Process, d.settings, slog.New(slog.DiscardHandler))
}
