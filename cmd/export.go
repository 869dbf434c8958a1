package cmd

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node"
)

// exportOptions are the settings and flags of the export command.
type exportOptions struct {
	node   node.Config
	log    terminal.LogOptions
	format string // "" = by the name of the output, else csv
	what   string
	output string // "" = stdout
}

// Values of --what.
const (
	exportAll     = "all"
	exportCurrent = "current"
	exportHistory = "history"
)

func (p *commands) newExport() *cobra.Command {
	o := exportOptions{what: exportAll, log: terminal.LogOptions{Format: "text", Level: "warn"}}
	return command.Spec{
		Use:   "export --data DIR",
		Short: "Write what a data directory holds as a file of observations",
		Long: `export writes a data directory as a file of observations that tasard import reads back: a directory into which it is
imported answers as this one does. No node may be running on the directory; export of a copy needs no stop. As a start
does, it takes the lock of the directory and cuts off what a crash left unfinished at the end of the log, keeping the
bytes in a file beside it.

  --what current  the last word of every source on every quote, also what has expired
  --what history  one line for each row of daily history
  --what all      both: the default

The file holds no quarantine, but for values that were held as implausible until the next answer of their source
confirmed them: the import needs them to come to the same end, and holds them again. What keeps everything is
tasard backup, which needs no stop.`,
		Example: `  tasard export --data ./data -o rates.csv
  tasard export --data ./data --what current --format ndjson`,
		Settings: func(flags *pflag.FlagSet) {
			setting.AddDirectory(flags, &o.node)
			setting.AddLog(flags, &o.log)
		},
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(setting.Enum(&o.format, "csv", "ndjson"), "format", "form of the file; by default the name of the output tells, else csv")
			flags.Var(setting.Enum(&o.what, exportAll, exportCurrent, exportHistory), "what", "what to write")
			flags.VarP(setting.Path(&o.output, "FILE"), "output", "o", "write to `FILE`, not to stdout")
		},
		Run: func(ctx context.Context, _ []string) error { return p.export(ctx, &o) },
	}.Command(p.Process)
}

func (p *commands) export(ctx context.Context, o *exportOptions) (err error) {
	// A file in place of the directory is reported by opening it, as in other commands.
	if info, err := os.Stat(o.node.Dir); err != nil || info.IsDir() {
		if err := datadir.RequireLog(o.node.Dir); err != nil {
			return err
		}
	}
	opened, err := datadir.Open(ctx, p.Process, o.node, p.Logger(o.log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	states, err := datadir.States(ctx, opened.System)
	if err != nil {
		return err
	}
	format := cmp.Or(collectors.Format(o.format), collectors.FormatOf(o.output), collectors.CSV)
	return writeOutput(p.Stdout, o.output, func(out io.Writer) error {
		return writeObservations(out, format, exportedObservations(states, o.what))
	})
}

func writeObservations(out io.Writer, format collectors.Format, observations []collectors.Observation) error {
	writer, err := collectors.NewWriter(out, format)
	if err != nil {
		return err
	}
	for _, observation := range observations {
		if err := writer.Write(observation); err != nil {
			return err
		}
	}
	return writer.Flush()
}

// writeOutput calls write with a file that gets its name only when it is complete; path "" is stdout.
func writeOutput(stdout io.Writer, path string, write func(io.Writer) error) error {
	if path == "" {
		return outputError(write(stdout))
	}
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return outputError(err)
	}
	if err == nil && !info.Mode().IsRegular() { // a pipe or a device can't be replaced
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return outputError(err)
		}
		return outputError(errors.Join(write(file), file.Close()))
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return outputError(err)
	}
	err = errors.Join(write(file), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return outputError(errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

func outputError(err error) error {
	if err == nil {
		return nil
	}
	return exit.Errorf(exit.CannotWrite, "write export: %w", err)
}

func exportedObservations(states []engine.SavedCurrency, what string) []collectors.Observation {
	switch what {
	case exportCurrent:
		return collectors.ExportSourceQuotes(states)
	case exportHistory:
		return collectors.ExportHistory(states)
	}
	return collectors.Export(states)
}
