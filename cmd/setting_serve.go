package cmd

import (
	"errors"
	"log/slog"

	"github.com/spf13/cobra"
)

// serveOptions are the settings of the serve command.
type serveOptions struct {
	nodeOptions
	log      logOptions
	imported string // file to take in at start, "" = none
}

// defaultServe is what serve does where nobody says otherwise.
func defaultServe() *serveOptions {
	return &serveOptions{nodeOptions: defaultNode(), log: logOptions{format: "auto", level: "info"}}
}

// addServe declares the settings of serve, for itself and for the commands that look at them.
func addServe(cmd *cobra.Command, o *serveOptions) {
	addNode(cmd, &o.nodeOptions)
	addLog(cmd, &o.log)
	cmd.Flags().Var(pathValue(&o.imported, "FILE"), "import", "take a `FILE` of observations in after the start; - is standard input")
	markSettings(cmd.Flags())
}

// checkServe finds what would keep a node from starting, but for the data directory.
func (p *process) checkServe(o *serveOptions) error {
	return errors.Join(inFlags(p.settledNode(&o.nodeOptions, slog.New(slog.DiscardHandler)).Check()), p.checkImport(o.imported))
}

// checkImport wants a file that can be opened; a pipe is not, it would wait for its writer.
func (p *process) checkImport(name string) error {
	if name == "" {
		return nil
	}
	file, err := openInput(name, p.stdin)
	if err != nil || file.waits {
		return err
	}
	return file.Close()
}
