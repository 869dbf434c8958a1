package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
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

const (
	mailTimeout   = 15 * time.Second
	sourceTimeout = 10 * time.Second
	// Free space in bytes. With less than diskFailBelow, a node is read-only (see actors.LogConfig).
	diskFailBelow = 64 << 20
	diskWarnBelow = 1 << 30
	// clockYearMin is the year of the program's first build. A clock that shows an earlier year was never set.
	clockYearMin = 2026
)

// checkSettings checks the settings of serve (flags, variables and configuration file), as serve does at its start.
func (d *doctor) checkSettings(context.Context) {
	if err := command.CheckServe(d.Process, d.settings); err != nil {
		d.addLines(findingFail, "settings", err)
		return
	}
	d.add(findingOK, "settings", "", "valid")
}

// checkDirectory checks the data directory, and that its owner owns the files in it: a command that ran as root may
// have left files that the node can't read. If the directory does not exist, serve creates it.
func (d *doctor) checkDirectory(context.Context) {
	path := d.settings.Config.Dir
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		d.add(findingOK, "data", "", "%s does not exist; serve will create it", path)
		return
	}
	var entries []fs.DirEntry
	if err == nil && info.IsDir() {
		entries, err = os.ReadDir(path)
	}
	if err != nil {
		d.add(findingFail, "data", "run the doctor as the user of the node, or as root", "open the data directory: %v", err)
		return
	}
	mode, owner, level := info.Mode().Perm(), node.OwnerOf(info), findingOK
	switch {
	case !info.IsDir():
		d.add(findingFail, "data", "choose another one with --data", "%s is not a directory", path)
		return
	case mode&node.OthersWrite != 0 && info.Mode()&fs.ModeSticky == 0:
		d.add(findingFail, "data", "look for files that are not yours, then run: chmod 700 "+path, "every user can write to %s (mode %04o), so serve refuses it", path, mode)
		return
	}
	for _, entry := range entries {
		if file, err := entry.Info(); err == nil && node.OwnerOf(file) != owner { // on an error it has just been removed
			d.add(findingFail, "data", fmt.Sprintf("run: chown -R --reference=%s %s", path, path), "%s belongs to user %d, and the directory to user %d",
				filepath.Join(path, entry.Name()), node.OwnerOf(file), owner)
			return
		}
	}
	advice := ""
	if self := os.Getuid(); owner != self && self > 0 {
		level, advice = findingWarn, fmt.Sprintf("run the doctor and the node as the user that owns it, not as user %d", self)
	}
	d.add(level, "data", advice, "%s has mode %04o and belongs to user %d", path, mode, owner)
}

// checkDisk checks the free space of the data directory's file system.
func (d *doctor) checkDisk(context.Context) {
	path := d.settings.Config.Dir
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		path = filepath.Dir(filepath.Clean(path))
	}
	free, err := wal.FreeSpace(path)
	if err != nil {
		return // checkDirectory reports the error
	}
	level, advice := findingOK, ""
	switch {
	case free < diskFailBelow:
		level, advice = findingFail, "free some space: the node is read-only"
	case free < diskWarnBelow:
		level, advice = findingWarn, "free some space: a node is read-only below 64 MiB"
	}
	d.add(level, "disk", advice, "%s MiB are free", terminal.Thousands(free>>20))
}

// checkLog verifies the log in the data directory, also beside a running node.
func (d *doctor) checkLog(context.Context) {
	found, err := wal.Exists(d.settings.Config.Dir)
	if err != nil || !found {
		d.add(findingOK, "log", "", "there is no log yet")
		return
	}
	report, err := wal.Verify(d.settings.Config.Dir)
	if err != nil {
		d.addLines(findingFail, "log", datadir.ExplainLogError(d.settings.Config.Dir, err))
		return
	}
	used := ""
	if report.Mark == wal.MarkInUse {
		used = "; a running node uses it"
	}
	d.add(findingOK, "log", "", "%s records, %s bytes, valid%s", terminal.Thousands(report.Records), terminal.Thousands(report.LogBytes), used)
}

// checkMail connects and logs in to the mail server. It sends no e-mail.
func (d *doctor) checkMail(ctx context.Context) {
	nodeConfig := d.config()
	switch nodeConfig.Mail.MethodOrDefault() {
	case admin.MailOff:
		d.add(findingWarn, "mail", "set --smtp-addr and --mail-from before keys are required", "%s", command.NoMailNotice)
		return
	case admin.MailLog:
		d.add(findingWarn, "mail", "set a mail server with --smtp-addr", "login codes are printed (--smtp-addr log); use this only for development")
		return
	}
	config, err := nodeConfig.MailClient()
	if err != nil {
		return // checkSettings reports the error
	}
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	if err := mail.Check(ctx, config); err != nil {
		d.add(findingFail, "mail", "check the server and the --smtp settings; login codes can't be sent", "%s accepts no e-mail: %v", config.Addr, err)
		return
	}
	login := ""
	if config.User != "" {
		login = ", login as " + config.User
	}
	d.add(findingOK, "mail", "", "%s accepts e-mail (%s)%s; none was sent", config.Addr, config.TLS, login)
}

// checkSources lists the hosts from which the node fetches rates. With --network it connects to each and sends nothing.
func (d *doctor) checkSources(ctx context.Context) {
	if d.settings.NoCollect {
		d.add(findingOK, "sources", "", "collecting is off (--no-collect)")
		return
	}
	reference, err := node.LoadReferenceData(d.settings.Config.Catalogue, d.settings.Config.Definitions)
	if err != nil {
		return // checkSettings reports the error
	}
	secrets, err := d.config().ReadSourceSecrets(reference.Sources)
	if err != nil {
		return // likewise
	}
	if d.settings.Config.Collect.Contact == "" {
		d.add(findingWarn, "sources", "set --collect-contact", "operators of collected sites find no contact in the User-Agent")
	}
	var hosts []string // HOST:PORT of the first page of each enabled source
	disabled := 0
	for _, definition := range secrets.Apply(reference.Sources).Definitions() {
		if definition.Disabled != "" {
			disabled++
			continue
		}
		if address, err := url.Parse(definition.Pages[0].Requests[0].URL); err == nil { // LoadReferenceData has checked it
			port := cmp.Or(address.Port(), map[string]string{"http": "80"}[address.Scheme], "443")
			hosts = append(hosts, net.JoinHostPort(address.Hostname(), port))
		}
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	if !d.network {
		d.add(findingOK, "sources", "", "%s, %d disabled; not tried (--network): %s", terminal.Plural(len(hosts), "host"), disabled, strings.Join(hosts, ", "))
		return
	}
	dial := d.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: sourceTimeout}).DialContext
	}
	for _, host := range hosts {
		conn, err := dial(ctx, "tcp", host)
		if err != nil {
			d.add(findingWarn, "sources", "check DNS and routes of this machine; tasard sources check fetches like the node", "%s is not reachable: %v", host, err)
			continue
		}
		_ = conn.Close() // nothing was sent
		d.add(findingOK, "sources", "", "%s is reachable", host)
	}
}

// checkClock checks whether the clock is set and synchronised.
func (d *doctor) checkClock(context.Context) {
	const advice = "set the clock, and synchronise it with chrony or systemd-timesyncd"
	known, synchronised := clockSynchronised()
	switch now := terminal.FormatInstant(d.Clock()); {
	case d.Clock().UTC().Year() < clockYearMin:
		d.add(findingFail, "clock", advice, "it is %s: the clock was never set", now)
	case known && !synchronised:
		d.add(findingWarn, "clock", advice, "it is %s; the clock is not synchronised", now)
	case known:
		d.add(findingOK, "clock", "", "it is %s; the clock is synchronised", now)
	default:
		d.add(findingOK, "clock", "", "it is %s; this system does not report synchronisation", now)
	}
}
