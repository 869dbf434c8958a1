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

// CredentialsVariable names the directory in which a service manager hands secrets over. It guards them itself, by access lists that look
// like a readable group.
const CredentialsVariable = "CREDENTIALS_DIRECTORY"

// Process is what a command has of the world.
type Process struct {
	Name    string   // how the program was called, "" = tasard
	Args    []string // without the program's name
	Environ []string // NAME=value
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Clock   func() time.Time
	Seed    func() uint64 // chance that nobody can foresee
	Random  io.Reader     // the same for secrets; safe for concurrent use

	// Where institutions are found. nil = the network, and the authorities of the system; the demo and tests have their own.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Roots *x509.CertPool

	OnReady func() // is called when a node has read its log; nil = nothing

	errorLog *slog.Logger // where the last word goes when logs are JSON; nil = a plain line
}

// ProgramName is how to call the program again in a shell that does as this one does.
func (p *Process) ProgramName() string {
	if p.Name == "" || strings.ContainsFunc(p.Name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("./_-+", r)
	}) {
		return "tasard"
	}
	return p.Name
}

// Report is the last word on an error: one line for each problem.
func (p *Process) Report(err error) {
	if err == nil {
		return
	}
	if p.errorLog != nil {
		p.errorLog.Error(err.Error(), "exitCode", exit.Code(err))
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(err.Error(), "\n"), "\n") {
		terminal.Fprintf(p.Stderr, "tasard: %s\n", line)
	}
}

// Getenv is the value of a variable of the environment, "" when there is none.
func (p *Process) Getenv(name string) string {
	for _, entry := range p.Environ {
		if text, found := strings.CutPrefix(entry, name+"="); found {
			return text
		}
	}
	return ""
}

// Logger is the command's log, on stderr. When it is JSON, the last word is a line of it.
func (p *Process) Logger(o terminal.LogOptions) *slog.Logger {
	logger := terminal.NewLogger(p.Stderr, o)
	if _, lines := logger.Handler().(*slog.JSONHandler); lines {
		p.errorLog = logger
	}
	return logger
}

// CompleteConfig gives a configuration what it needs of the process.
func (p *Process) CompleteConfig(c node.Config, log *slog.Logger) node.Config {
	c.Logger, c.Clock, c.Random, c.Version, c.Credentials = log, p.Clock, p.Random, Version(), p.Getenv(CredentialsVariable)
	return c
}

// Version is the version that this build says of itself, "" when it says none.
func Version() string {
	if build, known := debug.ReadBuildInfo(); known {
		return build.Main.Version
	}
	return ""
}
