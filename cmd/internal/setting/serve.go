package setting

import (
	"errors"
	"log/slog"

	"github.com/spf13/pflag"
	"github.com/tasard/tasard/cmd/internal/input"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
)

// Serve are the settings of the serve command.
type Serve struct {
	Node
	Log      terminal.LogOptions
	Imported string // file to take in at start, "" = none
}

// DefaultServe is what serve does where nobody says otherwise.
func DefaultServe() *Serve {
	return &Serve{Node: DefaultNode(), Log: terminal.LogOptions{Format: "auto", Level: "info"}}
}

// AddServe declares the settings of serve, for itself and for the commands that look at them.
func AddServe(flags *pflag.FlagSet, o *Serve) {
	addNode(flags, &o.Node)
	AddLog(flags, &o.Log)
	flags.Var(Path(&o.Imported, "FILE"), "import", "take a `FILE` of observations in after the start; - is standard input")
}

// CheckServe finds what would keep a node from starting, but for the data directory.
func CheckServe(p *process.Process, o *Serve) error {
	return errors.Join(Explain(SettledNode(p, &o.Node, slog.New(slog.DiscardHandler)).Check()), checkImport(p, o.Imported))
}

// checkImport wants a file that can be opened; a pipe is not, it would wait for its writer.
func checkImport(p *process.Process, name string) error {
	if name == "" {
		return nil
	}
	file, err := input.Open(name, p.Stdin)
	if err != nil || file.Waits {
		return err
	}
	return file.Close()
}
