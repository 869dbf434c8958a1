package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/remote"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
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

// doctorOptions are the settings of serve, which the doctor checks, and the flags of the doctor.
type doctorOptions struct {
	*setting.Serve
	flags      *pflag.FlagSet
	network    bool
	json       bool
	requiredAt time.Time // value of --required-at; zero if it is not given
}

// doctor has the state of one examination.
type doctor struct {
	*process.Process
	o         *doctorOptions
	startedAt time.Time
	node      *admin.KeyPolicy // when the running node requires API keys; nil if no node is running
	rehearsed []clientView     // result of the rehearsal of required API keys
	findings  []finding
}

// doctorReport is the output of --json.
type doctorReport struct {
	Worst     string       `json:"worst"`
	Findings  []finding    `json:"findings"`
	KeyPolicy []clientView `json:"keyPolicy"`
}

// New returns the command tasard doctor.
func New(p *process.Process) *cobra.Command {
	o := &doctorOptions{Serve: setting.DefaultServe()}
	cmd := command.Spec{
		Use:   "doctor --data DIR",
		Short: "Check everything around a node",
		Long: `doctor checks everything around a node that could make it fail or give wrong answers: settings, clock, time zone, data
directory, log, file descriptors, address, certificate, other nodes of its cluster, mail server, sources. Give it the
flags of serve; a node may be running or not. Each line begins with OK, WARN or FAIL and says what to do. The exit
code is 1 if a line is FAIL.

It changes nothing that lasts. While no node runs it times the disk with a scratch file in the data directory. It logs
in to the mail server, asks whether it accepts the sender, and sends no e-mail. With --network it connects to the host
of each source and sends no request; tasard sources check does.

At the end it shows the answers to a client without a key 14 days before keys are required, at that instant, and a day
later. They come from a temporary node whose clock is set to these instants. The instant is the announced one, that of
--required-at, or one in 15 days.`,
		Example: `  tasard doctor --config /etc/tasard/tasard.toml
  tasard doctor --data ./data --network --json
  tasard doctor --data ./data --required-at 2027-03-01T00:00:00-04:00`,
		Settings: func(flags *pflag.FlagSet) { setting.AddServe(flags, o.Serve) },
		Flags: func(flags *pflag.FlagSet) {
			setting.BoolFlag(flags, &o.network, "network", "connect to the host of each source")
			setting.BoolFlag(flags, &o.json, "json", "print JSON")
			flags.Var(setting.Instant(&o.requiredAt), "required-at", "rehearse required keys from this `INSTANT` on, RFC 3339")
		},
	}.Command(p)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { // replaces the RunE of Spec.Command, which would not report all problems of settings
		if err := errors.Join(setting.Resolve(cmd, p.Environ), setting.RequireData(cmd)); err != nil {
			return err
		}
		o.flags = cmd.Flags()
		return examine(cmd.Context(), p, o)
	}
	return cmd
}

func examine(ctx context.Context, p *process.Process, o *doctorOptions) error {
	quiet := *p // its log is discarded, because the lines would mix with the findings
	quiet.Stderr = io.Discard
	d := &doctor{Process: &quiet, o: o, startedAt: p.Clock()}
	for _, check := range []func(context.Context){
		d.settings, d.running, d.zone, d.directory, d.log, d.disk, d.archive, d.descriptors, d.address, d.certificate, d.cluster, d.mail, d.sources, d.rehearsal, d.clock,
	} {
		check(ctx)
		if ctx.Err() != nil {
			return exit.Errorf(exit.Interrupted, "interrupted while examining")
		}
	}
	if err := printDoctor(p, d); err != nil {
		return err
	}
	if d.worst() == findingFail {
		return exit.Errorf(exit.CheckFailed, "there are faults: see the lines that begin with FAIL")
	}
	return nil
}

// add adds a finding. advice is what the operator should do; it may be "".
func (d *doctor) add(level, check, advice, format string, args ...any) {
	d.findings = append(d.findings, finding{level, check, fmt.Sprintf(format, args...), advice})
}

func (d *doctor) addLines(level, check, advice string, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		d.add(level, check, advice, "%s", line)
	}
}

func (d *doctor) worst() string {
	for _, level := range []string{findingFail, findingWarn} {
		if slices.ContainsFunc(d.findings, func(f finding) bool { return f.Level == level }) {
			return level
		}
	}
	return findingOK
}

func printDoctor(p *process.Process, d *doctor) error {
	if d.o.json {
		encoder := json.NewEncoder(p.Stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(doctorReport{d.worst(), d.findings, d.rehearsed})
	}
	table := terminal.NewTable(p.Stdout, "")
	for _, f := range d.findings {
		text := terminal.Sanitize(f.Message)
		if f.Advice != "" {
			text += "; " + terminal.Sanitize(f.Advice)
		}
		terminal.Fprintf(table, "%s\t%s\t%s\n", f.Level, f.Check, text)
	}
	_ = table.Flush() // Stdout is an ErrWriter, which keeps errors
	for _, view := range d.rehearsed {
		terminal.Fprintf(p.Stdout, "\n%s, %s\n", view.Day, terminal.FormatInstant(view.At))
		for _, line := range append([]string{view.Request, view.Status}, view.Headers...) {
			terminal.Fprintf(p.Stdout, "  %s\n", terminal.Sanitize(line))
		}
	}
	return nil
}

// settings checks the settings of serve (flags, variables and configuration file), as serve does at its start.
func (d *doctor) settings(context.Context) {
	if err := setting.CheckServe(d.Process, d.o.flags, d.o.Serve); err != nil {
		d.addLines(findingFail, "settings", "", err)
		return
	}
	d.add(findingOK, "settings", "", "valid")
}

// running finds out whether a node is running, and from when on that node requires API keys. Later checks use the
// result.
func (d *doctor) running(ctx context.Context) {
	client := remote.New(remote.SocketPath(d.o.Config.Admin.Socket, d.o.Config.Dir), "tasard serve")
	policy, err := remote.Call(ctx, client, admin.ShowKeyPolicy, admin.NoBody{})
	switch {
	case err == nil:
		d.node = &policy
		d.add(findingOK, "node", "", "a node runs on this data directory")
		d.proxy(ctx, client)
	case exit.Code(err) == exit.Unavailable:
		d.add(findingOK, "node", "", "no node runs on this data directory")
	default:
		d.add(findingFail, "node", "see its log", "a node runs but does not answer properly: %v", err)
	}
}

// proxy warns if many requests to the running node carry X-Forwarded-For and come from an address that it does not
// trust.
func (d *doctor) proxy(ctx context.Context, client *remote.Node) {
	if state, err := client.Readiness(ctx); err == nil && state.UntrustedProxy != "" {
		d.add(findingWarn, "proxy", "if it is your proxy, name it with --trusted-proxy",
			"requests from %s carry X-Forwarded-For, but it is not a trusted proxy: all its clients share one quota", state.UntrustedProxy)
	}
}

// zone checks that the system knows the time zone of Santo Domingo. Quotas, and the times at which rates are collected,
// depend on the time zone.
func (d *doctor) zone(context.Context) {
	const dominicanOffset = -4 * 60 * 60
	local := d.Clock().In(engine.Location())
	if _, zoneOffset := local.Zone(); zoneOffset != dominicanOffset {
		d.add(findingWarn, "zone", "check whether the country has changed its time; the program uses UTC-04:00 all year",
			"the time zone data of this machine has %s for %s", local.Format("-07:00"), engine.Zone)
		return
	}
	d.add(findingOK, "zone", "", "it is %s in Santo Domingo, on %s", local.Format("15:04"), engine.DateOf(d.Clock()))
}
