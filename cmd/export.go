package cmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/collectors"
)

func (p *commands) newExport() *cobra.Command {
	o, format := command.ForData(), collectors.CSV
	return command.Spec{
		Use:   "export --data DIR",
		Short: "Export a data directory as a file of observations",
		Long: `export writes observations to standard output, in a form that tasard import reads. A directory that imports them
gives the same answers. It works on a copy in the directory for temporary files, also beside a running node and with a
read-only directory, and changes nothing.

It contains no quarantined values. A complete copy is tasard backup, which works while the node runs.`,
		Example: `  tasard export --data ./data > rates.csv
  tasard export --data ./data --format ndjson | gzip > rates.ndjson.gz`,
		Settings: func(flags *pflag.FlagSet) {
			command.Add(flags, o, "data", "catalogue", "sources", "log-format", "log-level")
		},
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(command.Enum(&format, collectors.CSV, collectors.NDJSON), "format", "format of the output")
		},
		Run: func(ctx context.Context, _ []string) error { return p.export(ctx, o, format) },
	}.Command(p.Process)
}

func (p *commands) export(ctx context.Context, o *command.Serve, format collectors.Format) (err error) {
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
	states, err := data.System.States()
	if err != nil {
		return err
	}
	writer, err := collectors.NewWriter(p.Stdout, format)
	for _, observation := range collectors.Export(states) {
		if err == nil {
			err = writer.Write(observation)
		}
	}
	if err == nil {
		err = writer.Flush()
	}
	return outputError(err)
}

func outputError(err error) error {
	if err == nil {
		return nil
	}
	return exit.Errorf(exit.CannotWrite, "write export: %w", err)
}
