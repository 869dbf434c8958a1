package backup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/actors/dump"
	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
)

// NewLog returns the command tasard log.
func NewLog(p *process.Process) (cmd *cobra.Command) {
	cmd = command.Spec{
		Use:   "log",
		Short: "Check, print or repair the log of a data directory",
		Long:  `log works on the files of a data directory. A node may be running on it, except for repair.`,
		Example: `  tasard log verify --data ./data
  tasard log dump --data ./data | tail -1
  tasard log repair --data ./data --yes`,
		Run:         func(context.Context, []string) error { return cmd.Help() },
		Subcommands: []*cobra.Command{newLogVerify(p), newLogDump(p), newLogRepair(p)},
	}.Command(p)
	return cmd
}

func newLogVerify(p *process.Process) *cobra.Command {
	o := &command.Serve{}
	return command.Spec{
		Use:   "verify --data DIR",
		Short: "Check every byte of the log and of the snapshots",
		Long: `verify checks every byte of the log and of the snapshots, prints a summary and changes nothing. Damage ends it with exit
code 78 and one line that names file and offset. A damaged snapshot whose records are all in the log is only a warning.`,
		Example: `  tasard log verify --data ./data
  tasard log verify --data /var/lib/tasard`,
		Settings: func(flags *pflag.FlagSet) { command.Add(flags, o, "data") },
		Run:      withLog(o, func(_ context.Context, data string) error { return verifyLog(p.Stdout, data) }),
	}.Command(p)
}

func newLogDump(p *process.Process) *cobra.Command {
	o := &command.Serve{}
	return command.Spec{
		Use:   "dump --data DIR",
		Short: "Print every record of the log, one JSON object a line",
		Long: `dump prints every record of the log as one line of JSON: its sequence, the file and offset of its batch, and the event.
Records that are only in a snapshot are not printed. It changes nothing.`,
		Example: `  tasard log dump --data ./data | head -3
  tasard log dump --data ./data | tail -1`,
		Settings: func(flags *pflag.FlagSet) { command.Add(flags, o, "data") },
		Run:      withLog(o, func(ctx context.Context, data string) error { return dumpLog(ctx, p.Stdout, data) }),
	}.Command(p)
}

func newLogRepair(p *process.Process) *cobra.Command {
	o := &command.Serve{}
	var yes bool
	return command.Spec{
		Use:   "repair --data DIR",
		Short: "Cut a damaged log, and save the part that is cut off",
		Long: `repair makes a damaged log usable again and gives up the records after the damage. It is a last resort: restoring a
backup loses less. Every byte that it cuts off stays in the directory, in files named *.damaged-TIME. Without --yes it
only reports the damage. No record that a snapshot holds is lost. A damaged snapshot whose records are all in the log is
moved aside without a loss. An undamaged log is not changed. The log of a node of a cluster is not
cut: emptied, its directory is filled again by the other nodes.`,
		Example: `  tasard log repair --data ./data
  tasard log repair --data ./data --yes`,
		Settings: func(flags *pflag.FlagSet) { command.Add(flags, o, "data") },
		Flags: func(flags *pflag.FlagSet) {
			command.BoolFlag(flags, &yes, "yes", "cut the log; without it nothing is changed")
		},
		Run: withLog(o, func(_ context.Context, data string) error {
			if !yes {
				return previewRepair(p.Stdout, data)
			}
			if err := node.CheckOwner(data, true); err != nil { // files of root would keep the node of another user from starting
				return err
			}
			if _, err := wal.Verify(data); err == nil || node.RefillHint(data) == "" {
				return repairLog(p.Stdout, data, wal.Options{Clock: p.Clock})
			}
			return previewRepair(p.Stdout, data)
		}),
	}.Command(p)
}

// withLog returns a function for command.Spec.Run. The function returns an error if the data directory has no log, and
// otherwise calls run.
func withLog(o *command.Serve, run func(ctx context.Context, data string) error) func(context.Context, []string) error {
	return func(ctx context.Context, _ []string) error {
		if err := datadir.RequireLog(o.Config.Dir); err != nil {
			return err
		}
		return run(ctx, o.Config.Dir)
	}
}

func verifyLog(out io.Writer, data string) error {
	report, err := wal.Verify(data)
	if err != nil {
		return datadir.ExplainLogError(data, err)
	}
	if report.Records > 0 {
		terminal.Fprintf(out, "records   %s to %s\nbatches   %s\n",
			terminal.Thousands(report.First), terminal.Thousands(report.Last), terminal.Thousands(report.Batches))
	} else {
		terminal.Fprintf(out, "records   none, the next one is %s\n", terminal.Thousands(report.Last+1))
	}
	terminal.Fprintf(out, "segments  %d, %s bytes\n", report.Segments, terminal.Thousands(report.LogBytes))
	for _, snapshot := range report.Snapshots {
		if snapshot.Damage == nil {
			terminal.Fprintf(out, "snapshot  up to record %s, %s bytes\n", terminal.Thousands(snapshot.Sequence), terminal.Thousands(snapshot.Bytes))
		}
	}
	printDamagedSnapshots(out, &report)
	if report.TornBytes > 0 {
		terminal.Fprintf(out, "torn      %s bytes at the end were never acknowledged; the next start moves them to a file\n",
			terminal.Thousands(report.TornBytes))
	}
	if report.AmbiguousTail {
		terminal.Fprintf(out, "ambiguous the mark is older than the log; a lost batch at the end would not be noticed\n")
	}
	if report.Mark == wal.MarkInUse {
		terminal.Fprintf(out, "The log is whole up to record %s; a running node uses it.\n", terminal.Thousands(report.Last))
		return nil
	}
	terminal.Fprintf(out, "The log is whole.\n")
	return nil
}

// printDamagedSnapshots prints a warning for each damaged snapshot, and returns how many there are.
func printDamagedSnapshots(out io.Writer, report *wal.Report) (damaged int) {
	for _, snapshot := range report.Snapshots {
		if snapshot.Damage != nil {
			terminal.Fprintf(out, "warning   %v\n", snapshot.Damage)
			damaged++
		}
	}
	return damaged
}

// dumpedRecord is one line of the output of tasard log dump.
type dumpedRecord struct {
	Sequence uint64          `json:"sequence"`
	Segment  string          `json:"segment"`
	Offset   int64           `json:"offset"`
	Event    json.RawMessage `json:"event"`
}

func dumpLog(ctx context.Context, out io.Writer, data string) error {
	buffered := bufio.NewWriter(out)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	err := wal.Dump(data, func(entry wal.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		event, err := dump.Record(entry.Record)
		if err != nil {
			return exit.Errorf(exit.BadData, "%s at offset %d, record %d: %w", entry.Segment, entry.Offset, entry.Sequence, err)
		}
		return encoder.Encode(dumpedRecord{entry.Sequence, filepath.Base(entry.Segment), entry.Offset, json.RawMessage(event)})
	})
	if flushErr := buffered.Flush(); flushErr != nil {
		return exit.Errorf(exit.IOError, "write records: %w", flushErr)
	}
	return datadir.ExplainLogError(data, err)
}

// previewRepair returns an error that describes the damage that log repair --yes would repair.
func previewRepair(out io.Writer, data string) error {
	report, err := wal.Verify(data)
	var damage *wal.DamageError
	switch {
	case errors.As(err, &damage):
		if damage.Hint = node.RefillHint(data); damage.Hint == "" {
			damage.Hint = "restore the directory from a backup, or cut the log here with --yes: that keeps the records before this place and those in " +
				"a snapshot, gives up the others and saves the cut bytes in *.damaged files"
			if report.Segments == 0 {
				damage.Hint = "if a restore was interrupted here, empty the directory and restore again; otherwise " + damage.Hint
			}
		}
		return exit.Errorf(exit.BadData, "%w", damage)
	case err != nil:
		return datadir.ExplainLogError(data, err)
	case printDamagedSnapshots(out, &report) > 0:
		terminal.Fprintf(out, "The log is whole; with --yes the damaged snapshots are moved aside.\n")
	default:
		terminal.Fprintf(out, "The log is whole; there is nothing to repair.\n")
	}
	return nil
}

func repairLog(out io.Writer, data string, o wal.Options) error {
	report, err := wal.Repair(data, o)
	for _, file := range report.SavedFiles {
		terminal.Fprintf(out, "saved     %s\n", file)
	}
	switch {
	case err != nil:
		return datadir.ExplainLogError(data, err)
	case report.Cause == nil:
		terminal.Fprintf(out, "The log is whole; nothing was changed.\n")
		return nil
	}
	terminal.Fprintf(out, "cause     %v\nlost      %s\n", report.Cause, lostRecords(&report))
	if report.LostFrom == 0 {
		terminal.Fprintf(out, "The log has records up to %d.\n", report.Last)
		return nil
	}
	terminal.Fprintf(out, "The log now has records up to %d. Import the lost observations again if you have their file.\n", report.Last)
	return nil
}

// lostRecords says which records a repair loses. Those that a snapshot holds are not lost.
func lostRecords(r *wal.RepairReport) string {
	switch {
	case r.LostFrom == 0:
		return "no record"
	case r.LostTo == 0:
		return fmt.Sprintf("record %d and any that followed it", r.LostFrom)
	case r.LostTo == r.LostFrom:
		return fmt.Sprintf("record %d", r.LostFrom)
	}
	return fmt.Sprintf("%s, %d to %d", terminal.Plural(int(r.LostTo-r.LostFrom+1), "record"), r.LostFrom, r.LostTo) //nolint:gosec // G115: a count of records
}
