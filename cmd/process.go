package cmd

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

	"github.com/tasard/tasard/node"
)

// credentialsVariable names the directory in which a service manager hands secrets over. It guards them itself, by access lists that look
// like a readable group.
const credentialsVariable = "CREDENTIALS_DIRECTORY"

// process is what a command has of the world.
type process struct {
	name    string   // how the program was called, "" = tasard
	args    []string // without the program's name
	environ []string // NAME=value
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	clock   func() time.Time
	seed    func() uint64 // chance that nobody can foresee
	random  io.Reader     // the same for secrets; safe for concurrent use

	// Where institutions are found. nil = the network, and the authorities of the system; the demo and tests have their own.
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	roots *x509.CertPool

	errors *slog.Logger // where the last word goes when logs are JSON; nil = a plain line
}

// called is how to call the program again in a shell that does as this one does.
func (p *process) called() string {
	if p.name == "" || strings.ContainsFunc(p.name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("./_-+", r)
	}) {
		return "tasard"
	}
	return p.name
}

// report is the last word on an error: one line for each problem.
func (p *process) report(err error) {
	if err == nil {
		return
	}
	if p.errors != nil {
		p.errors.Error(err.Error(), "exitCode", exitCode(err))
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(err.Error(), "\n"), "\n") {
		say(p.stderr, "tasard: %s\n", line)
	}
}

// variable is the value of a variable of the environment, "" when there is none.
func (p *process) variable(name string) string {
	for _, entry := range p.environ {
		if text, found := strings.CutPrefix(entry, name+"="); found {
			return text
		}
	}
	return ""
}

// logger is the command's log, on stderr. When it is JSON, the last word is a line of it.
func (p *process) logger(o logOptions) *slog.Logger {
	logger := newLogger(p.stderr, o)
	if _, lines := logger.Handler().(*slog.JSONHandler); lines {
		p.errors = logger
	}
	return logger
}

// within gives a configuration what it needs of the process.
func (p *process) within(c node.Config, log *slog.Logger) node.Config {
	c.Logger, c.Clock, c.Random, c.Version, c.Credentials = log, p.clock, p.random, buildVersion(), p.variable(credentialsVariable)
	return c
}

// buildVersion is the version that this build says of itself, "" when it says none.
func buildVersion() string {
	if build, known := debug.ReadBuildInfo(); known {
		return build.Main.Version
	}
	return ""
}
