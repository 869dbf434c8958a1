package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tasard/tasard/cmd/internal/datadir"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/wal"
)

const (
	// Free space in bytes. With less than diskFailBelow, a node is read-only (see actors.LogConfig). With less than
	// diskWarnBelow, the doctor warns.
	diskFailBelow = 64 << 20
	diskWarnBelow = 1 << 30
	// To time the disk, the doctor writes and syncs a block of scratchBytes, scratchSyncs times. The log does the same
	// with each batch of records.
	scratchSyncs     = 20
	scratchBytes     = 4 << 10
	syncSlow         = 20 * time.Millisecond
	dataModeRefused  = 0o022 // with these bits other users can change the directory
	scratchName      = ".doctor-*"
	dataModeWanted   = 0o700
	directoryMissing = "serve will create it"
)

type fileSystem struct {
	free   uint64 // bytes available to this user
	system string // kind of file system; "" = unknown
	risk   string // reason why this kind is unsuitable for data; "" = suitable
}

// directory checks the data directory. If it does not exist, directory checks that serve can create it.
func (d *doctor) directory(context.Context) {
	path := d.o.Config.Dir
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.missingDirectory(path)
	case err != nil:
		d.add(findingFail, "data", "run the doctor as the user of the node, or as root", "open the data directory: %v", err)
	case !info.IsDir():
		d.add(findingFail, "data", "choose another one with --data", "%s is not a directory", path)
	case info.Mode().Perm()&node.OthersWrite != 0:
		d.add(findingFail, "data", fmt.Sprintf("look for files that are not yours, then run: chmod %o %s", dataModeWanted, path), "every user can write to %s (mode %04o), so serve refuses it", path, info.Mode().Perm())
	case info.Mode().Perm()&dataModeRefused != 0:
		d.add(findingWarn, "data", fmt.Sprintf("run: chmod %o %s", dataModeWanted, path), "other users can write to %s (mode %04o)", path, info.Mode().Perm())
	default:
		d.owner(path, info)
	}
}

func (d *doctor) missingDirectory(path string) {
	parent := filepath.Dir(filepath.Clean(path))
	for {
		if _, err := os.Stat(parent); err == nil || parent == filepath.Dir(parent) {
			break
		}
		parent = filepath.Dir(parent)
	}
	if err := writable(parent); err != nil {
		d.add(findingFail, "data", "create it for the user that runs the node", "%s does not exist and can't be created: %v", path, err)
		return
	}
	d.add(findingOK, "data", "", "%s does not exist; %s", path, directoryMissing)
}

// writable creates a file in the directory and removes it. It returns an error if the directory is not writable.
func writable(directory string) error {
	file, err := os.CreateTemp(directory, scratchName)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// archive checks that the documents of sources can be kept in a directory outside of the data directory.
func (d *doctor) archive(context.Context) {
	path := d.o.ArchiveDir()
	if path == "" || d.o.NoCollect || filepath.Dir(path) == filepath.Clean(d.o.Config.Dir) {
		return // the method directory has checked the data directory
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		path = filepath.Dir(path)
	}
	if err := writable(path); err != nil {
		d.add(findingWarn, "archive", "create it for the user that runs the node, or use --archive off", "fetched documents are not kept: %v", err)
		return
	}
	d.add(findingOK, "archive", "", "fetched documents are kept in %s", d.o.ArchiveDir())
}

func (d *doctor) owner(path string, info fs.FileInfo) {
	if owner, user, known := ownersOf(info); known && owner != user && user != 0 {
		d.add(findingWarn, "data", "run the doctor and the node as the user that owns it", "%s belongs to user %d, the doctor runs as user %d", path, owner, user)
		return
	}
	d.add(findingOK, "data", "", "%s has mode %04o", path, info.Mode().Perm())
}

// log verifies the log in the data directory, also beside a running node.
func (d *doctor) log(context.Context) {
	found, err := wal.Exists(d.o.Config.Dir)
	if err != nil || !found {
		d.add(findingOK, "log", "", "there is no log yet")
		return
	}
	report, err := wal.Verify(d.o.Config.Dir)
	switch {
	case err != nil:
		d.addLines(findingFail, "log", "", datadir.ExplainLogError(d.o.Config.Dir, err))
	default:
		used := ""
		if report.Mark == wal.MarkInUse {
			used = "; a running node uses it"
		}
		d.add(findingOK, "log", "", "%s records, %s bytes, valid%s", terminal.Thousands(report.Records), terminal.Thousands(report.LogBytes), used)
	}
}

// disk checks the file system of the data directory: its kind, its free space, and how long a sync takes.
func (d *doctor) disk(context.Context) {
	path := d.o.Config.Dir
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return // the method directory reports the error
	}
	fileSystem, err := fileSystemOf(path)
	if err != nil {
		d.add(findingWarn, "disk", "", "find out the free space: %v", err)
		return
	}
	megabytes := terminal.Thousands(fileSystem.free >> 20)
	switch {
	case fileSystem.free < diskFailBelow:
		d.add(findingFail, "disk", "free some space: the node is read-only", "%s MiB are free", megabytes)
	case fileSystem.free < diskWarnBelow:
		d.add(findingWarn, "disk", "free some space: a node is read-only below 64 MiB", "%s MiB are free", megabytes)
	default:
		d.add(findingOK, "disk", "", "%s MiB are free", megabytes)
	}
	switch {
	case fileSystem.risk != "":
		d.add(findingWarn, "filesystem", "keep the data on a local disk", "the data is on %s: %s", fileSystem.system, fileSystem.risk)
	case fileSystem.system != "":
		d.add(findingOK, "filesystem", "", "the data is on %s", fileSystem.system)
	}
	d.syncTime(path)
}

// syncTime measures how long it takes to sync written data to the disk. It measures nothing while a node is running.
func (d *doctor) syncTime(path string) {
	if d.node != nil {
		d.add(findingOK, "sync", "", "not timed while a node runs; see its metrics")
		return
	}
	times, err := d.timeSyncs(path)
	if err != nil {
		d.add(findingFail, "sync", "let the user of the node write there", "write to the disk: %v", err)
		return
	}
	slices.Sort(times)
	median, worst := times[len(times)/2], times[len(times)-1]
	level, advice := findingOK, ""
	if median > syncSlow {
		level, advice = findingWarn, "every change waits for a sync: use a faster disk, or move other writers away"
	}
	d.add(level, "sync", advice, "median of %[3]d syncs %[1]s, worst %[2]s", median.Round(time.Microsecond), worst.Round(time.Microsecond), len(times))
}

func (d *doctor) timeSyncs(path string) (times []time.Duration, err error) {
	file, err := os.CreateTemp(path, scratchName)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	block := make([]byte, scratchBytes)
	for range scratchSyncs {
		start := d.Clock()
		if _, err := file.Write(block); err != nil {
			return nil, err
		}
		if err := file.Sync(); err != nil {
			return nil, err
		}
		times = append(times, d.Clock().Sub(start))
	}
	return times, nil
}
