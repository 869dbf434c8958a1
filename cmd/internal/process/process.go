package process

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/node"
)

// CredentialsVariable is the environment variable with the directory of systemd credentials: files with secrets. Access
// control lists protect these files, so their modes look as if the group could read them.
const CredentialsVariable = "CREDENTIALS_DIRECTORY"

// Process is the environment of a command.
type Process struct {
	Name    string   // path of the program; "" means tasard
	Args    []string // without the name of the program
	Environ []string // NAME=value
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Clock   func() time.Time
	Random  io.Reader // random bytes for secrets; safe for concurrent use

	// Dial and Roots are for connections to sources. By default these use the network and the system's certificate
	// authorities. The demo and tests set both fields.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Roots *x509.CertPool

	errorLog *slog.Logger       // logger for Report if logs are JSON; otherwise nil
	logQueue *terminal.LogQueue // standard error of a node, see NodeLogger; otherwise nil
}

// ProgramName returns a name with which a shell can run this program again.
func (p *Process) ProgramName() string {
	if p.Name == "" || strings.ContainsFunc(p.Name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("./_-+", r)
	}) {
		return "tasard"
	}
	return p.Name
}

// Report prints the error of a command, one line for each problem.
func (p *Process) Report(command string, err error) {
	if err == nil {
		return
	}
	if p.errorLog != nil {
		p.errorLog.Error(err.Error(), "exitCode", exit.Code(err))
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(err.Error(), "\n"), "\n") {
		terminal.Fprintf(p.Stderr, "%s: %s\n", command, line)
	}
}

// Getenv returns the value of an environment variable, or "" if it is not set.
func (p *Process) Getenv(name string) string {
	for _, entry := range p.Environ {
		if text, ok := strings.CutPrefix(entry, name+"="); ok {
			return text
		}
	}
	return ""
}

// Logger returns a logger that writes to standard error. If it writes JSON, Report uses it too.
func (p *Process) Logger(o terminal.LogOptions) *slog.Logger {
	return p.reportWith(terminal.NewLogger(p.Stderr, o), o)
}

// reportWith makes Report use a logger of standard error if it writes JSON.
func (p *Process) reportWith(logger *slog.Logger, o terminal.LogOptions) *slog.Logger {
	if o.IsJSON(p.Stderr) {
		p.errorLog = logger
	}
	return logger
}

// NodeLogger is like Logger, but for a node: after this, logging drops lines instead of blocking. Call CloseLog at the
// end.
func (p *Process) NodeLogger(o terminal.LogOptions) *slog.Logger {
	p.logQueue = terminal.NewLogQueue(p.Stderr)
	p.Stderr = p.logQueue
	return p.reportWith(terminal.NewNodeLogger(p.logQueue, o), o)
}

// CloseLog writes a node's waiting log lines. It waits up to a second for a blocked reader.
func (p *Process) CloseLog() {
	if p.logQueue != nil {
		p.logQueue.Close()
	}
}

// CompleteConfig returns a node's configuration with the fields for the process, such as the clock.
func (p *Process) CompleteConfig(c node.Config, log *slog.Logger) node.Config {
	c.Logger, c.Clock, c.Random, c.Version, c.Credentials = log, p.Clock, p.Random, Version(), p.Getenv(CredentialsVariable)
	if p.logQueue != nil {
		c.DroppedLogLines = p.logQueue.Dropped
	}
	return c
}

// Commit returns the commit of a build, or "" if unknown. It adds "with changes" for a checkout with uncommitted
// changes. build may be nil.
func Commit(build *debug.BuildInfo) string {
	if build == nil {
		return ""
	}
	settings := map[string]string{}
	for _, setting := range build.Settings {
		settings[setting.Key] = setting.Value
	}
	commit := settings["vcs.revision"]
	if commit != "" && settings["vcs.modified"] == "true" {
		commit += ", with changes"
	}
	return commit
}

// Version returns the module version of this build, or "" if it is unknown.
func Version() string {
	if build, ok := debug.ReadBuildInfo(); ok {
		return build.Main.Version
	}
	return ""
}
