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
	"github.com/tasard/tasard/collectors"
)

// exportOptions are the flags of tasard export. The command exports observations: a source's prices for one currency of
// one institution at one time.
type exportOptions struct {
	*command.Serve
	format string // output format; "" means by the extension of output, or csv
	output string // path of the output; "" means standard output
}

func (p *commands) newExport() *cobra.Command {
	o := exportOptions{Serve: command.ForData()}
	return command.Spec{
		Use:   "export --data DIR",
		Short: "Export a data directory as a file of observations",
		Long: `export writes a file of observations that tasard import reads. A directory that imports it gives the same answers. It
works on a copy in the directory for temporary files, also beside a running node and with a read-only directory, and
changes nothing.

The file contains no quarantined values. A complete copy is tasard backup, which works while the node runs.`,
		Example: `  tasard export --data ./data -o rates.csv
  tasard export --data ./data --format ndjson | gzip > rates.ndjson.gz`,
		Settings: func(flags *pflag.FlagSet) {
			command.Add(flags, o.Serve, "data", "catalogue", "sources", "log-format", "log-level")
		},
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(command.Enum(&o.format, "csv", "ndjson"), "format", "format of the file; default by the name of the output, else csv")
			flags.VarP(command.Path(&o.output, "FILE"), "output", "o", "write to `FILE` instead of stdout")
		},
		Run: func(ctx context.Context, _ []string) error { return p.export(ctx, &o) },
	}.Command(p.Process)
}

func (p *commands) export(ctx context.Context, o *exportOptions) (err error) {
	dir, err := os.MkdirTemp("", "tasard-export-")
	if err != nil {
		return outputError(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	data, err := datadir.OpenCopy(ctx, p.Process, o.Config, p.Logger(o.Log), filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	states, err := datadir.States(ctx, data.System)
	if err != nil {
		return err
	}
	format := cmp.Or(collectors.Format(o.format), collectors.FormatOf(o.output), collectors.CSV)
	return writeOutput(p.Stdout, o.output, func(out io.Writer) error {
		return writeObservations(out, format, collectors.Export(states))
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

// writeOutput calls write with the output. If path is "", that is stdout. Otherwise it is a temporary file, which
// replaces the file at path when complete.
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
