package cmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/actors/dump"
	"github.com/tasard/tasard/wal"
)

func (p *process) newLog() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Check, print or repair the log of a data directory",
		Long: `log looks at the files of a data directory without starting a node. No node may be running on it; a copy of the
directory can be looked at any time.`,
		Example: `  tasard log verify --data ./data
  tasard log dump --data ./data | tail -1
  tasard log repair --data ./data --yes`,
		Args: noArguments,
	}
	cmd.RunE = p.settled(func(context.Context, []string) error { return cmd.Help() })
	cmd.AddCommand(p.newLogVerify(), p.newLogDump(), p.newLogRepair())
	return cmd
}

func (p *process) newLogVerify() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "verify --data DIR",
		Short: "Check every byte of the log and of the snapshots",
		Long: `verify reads every byte of the log and of the snapshots, holds it against the checksums and says what there is. It
changes nothing. Damage ends it with exit code 78 and one line that names file and offset. A damaged snapshot that the
log still covers is a warning only: a start passes it over, and nothing is lost.`,
		Example: "  tasard log verify --data ./data",
		Args:    noArguments,
	}
	cmd.RunE = p.settled(onDirectory(&data, func(context.Context) error { return verifyLog(p.stdout, data) }))
	addData(cmd, &data)
	markSettings(cmd.Flags())
	return cmd
}

func (p *process) newLogDump() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "dump --data DIR",
		Short: "Print every record of the log, one JSON object a line",
		Long: `dump prints every record of the log as one line of JSON: its sequence, the file and the offset of its batch, and the
event. Records that only a snapshot still holds are not in the log. It changes nothing.`,
		Example: "  tasard log dump --data ./data | head -3",
		Args:    noArguments,
	}
	cmd.RunE = p.settled(onDirectory(&data, func(ctx context.Context) error { return dumpLog(ctx, p.stdout, data) }))
	addData(cmd, &data)
	markSettings(cmd.Flags())
	return cmd
}

func (p *process) newLogRepair() *cobra.Command {
	var data string
	var yes bool
	cmd := &cobra.Command{
		Use:   "repair --data DIR",
		Short: "Cut a damaged log, keeping what is cut off",
		Long: `repair makes a damaged log start again and gives up the records behind the damage. It is the last resort: a backup,
where there is one, loses less. Every byte that it cuts off stays in the directory, in files named *.damaged-TIME.
Without --yes it only says what is damaged. A damaged snapshot that the log still covers is put aside, and no record is
lost. A whole log is left alone.`,
		Example: `  tasard log repair --data ./data
  tasard log repair --data ./data --yes`,
		Args: noArguments,
	}
	cmd.RunE = p.settled(onDirectory(&data, func(context.Context) error {
		if !yes {
			return proposeRepair(p.stdout, data)
		}
		return repairLog(p.stdout, data, wal.Options{Clock: p.clock})
	}))
	addData(cmd, &data)
	markSettings(cmd.Flags())
	plainSwitch(cmd.Flags(), &yes, "yes", "cut the log; without it nothing is changed")
	return cmd
}

// onDirectory is work that needs a data directory with a log.
func onDirectory(data *string, work func(context.Context) error) func(context.Context, []string) error {
	return func(ctx context.Context, _ []string) error {
		if err := needLog(*data); err != nil {
			return err
		}
		return work(ctx)
	}
}

// verifyLog prints what a log holds. Damage is the error; what a start passes over is a line.
func verifyLog(out io.Writer, data string) error {
	report, err := wal.Verify(data)
	if err != nil {
		return logError(data, err)
	}
	say(out, "records   %s, from %d to %d, in %s batches\n", grouped(report.Records), report.First, report.Last, grouped(report.Frames))
	say(out, "segments  %d, %s bytes\n", report.Segments, grouped(report.LogBytes))
	for _, snapshot := range report.Snapshots {
		if snapshot.Damage != nil {
			say(out, "warning   %v\n", snapshot.Damage)
			continue
		}
		say(out, "snapshot  up to record %d, %s bytes\n", snapshot.Sequence, grouped(snapshot.Bytes))
	}
	if report.TornBytes > 0 {
		say(out, "torn      %s bytes at the end were never acknowledged; the next start puts them aside\n", grouped(report.TornBytes))
	}
	if report.AmbiguousTail {
		say(out, "unsure    the mark of what was acknowledged is older than the log; a lost batch at its end would not be noticed\n")
	}
	say(out, "The log is whole.\n")
	return nil
}

// dumpedRecord is a line of dump.
type dumpedRecord struct {
	Sequence uint64          `json:"sequence"`
	Segment  string          `json:"segment"`
	Offset   int64           `json:"offset"`
	Event    json.RawMessage `json:"event"`
}

func dumpLog(ctx context.Context, out io.Writer, data string) error {
	lines := bufio.NewWriter(out)
	encoder := json.NewEncoder(lines)
	encoder.SetEscapeHTML(false)
	err := wal.Dump(data, func(entry wal.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		event, err := dump.Record(entry.Record)
		if err != nil {
			return fail(exitBadData, "%s at offset %d, sequence %d: %w", entry.Segment, entry.Offset, entry.Seq, err)
		}
		return encoder.Encode(dumpedRecord{entry.Seq, filepath.Base(entry.Segment), entry.Offset, json.RawMessage(event)})
	})
	if flushed := lines.Flush(); flushed != nil {
		return fail(exitBroken, "write records: %w", flushed)
	}
	return logError(data, err)
}

// proposeRepair says what is damaged; the damage is the error.
func proposeRepair(out io.Writer, data string) error {
	report, err := wal.Verify(data)
	var damage *wal.DamageError
	switch {
	case errors.As(err, &damage):
		return fail(exitBadData, "%w; with --yes the records behind it are cut off and kept in *.damaged files", damage)
	case err != nil:
		return logError(data, err)
	}
	spoilt := slices.DeleteFunc(report.Snapshots, func(s wal.SnapshotReport) bool { return s.Damage == nil })
	for _, snapshot := range spoilt {
		say(out, "warning   %v\n", snapshot.Damage)
	}
	if len(spoilt) > 0 {
		say(out, "The log is whole; with --yes what is damaged is put aside.\n")
		return nil
	}
	say(out, "The log is whole; there is nothing to repair.\n")
	return nil
}

func repairLog(out io.Writer, data string, o wal.Options) error {
	report, err := wal.Repair(data, o)
	for _, kept := range report.Kept {
		say(out, "kept      %s\n", kept)
	}
	switch {
	case err != nil:
		return logError(data, err)
	case report.Cause == nil:
		say(out, "The log is whole; nothing was changed.\n")
		return nil
	}
	say(out, "cause     %v\n", report.Cause)
	switch {
	case report.LostFrom == 0:
		say(out, "lost      no record\nThe log has records up to %d.\n", report.Last)
		return nil
	case report.LostTo == 0:
		say(out, "lost      record %d and all that may have followed\n", report.LostFrom)
	default:
		say(out, "lost      records %d to %d\n", report.LostFrom, report.LostTo)
	}
	say(out, "The log has records up to %d now. Import the lost observations again if you have their file.\n", report.Last)
	return nil
}

// logError puts what an operator can do beside the errors of the log.
func logError(data string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wal.ErrLocked):
		return fail(exitBusy, "%s: a running node holds the directory; stop it, or look at a copy", data)
	}
	var damage *wal.DamageError
	if errors.As(err, &damage) {
		return damage // one line with file, offset and hint
	}
	return err
}

// needLog is the error of a place that holds no data directory to look at. It changes nothing.
func needLog(data string) error {
	if err := needDirectory(data); err != nil {
		return err
	}
	found, err := wal.Exists(data)
	switch {
	case err != nil:
		return fail(exitNoInput, "look at the data directory: %w", err)
	case !found:
		return fail(exitNoInput, "no data directory: there is no log in %s", data)
	}
	return nil
}

// needDirectory is the error of a place that is no directory.
func needDirectory(data string) error {
	info, err := os.Stat(data)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fail(exitNoInput, "no data directory: %s does not exist", data)
	case err != nil:
		return fail(exitNoInput, "look at the data directory: %w", err)
	case !info.IsDir():
		return fail(exitNoInput, "no data directory: %s is a file", data)
	}
	return nil
}
