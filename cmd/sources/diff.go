package sources

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/node"
)

func newDiff(p *process.Process) *cobra.Command {
	o, kept := &options{}, &archiveOptions{}
	return command.Spec{
		Use:   "diff FILE",
		Short: "Show what a changed definition would publish",
		Long: `diff reads the newest archived document of each page of a source with the definition of today and with that in FILE,
and shows the rates that differ. It requests and stores nothing and needs no node. A new source has no documents yet:
tasard sources check --save keeps some.

The exit code is 66 when there is no document, or when FILE can't read one that the definition of today reads.`,
		Example: `  tasard definitions show bhd-site > bhd-site.json   # change it, then
  tasard sources diff bhd-site.json --data ./data`,
		Args: command.ExactArgs(1, "a definition file"),
		Settings: func(flags *pflag.FlagSet) {
			kept.add(flags)
			o.add(flags)
		},
		Flags:        func(flags *pflag.FlagSet) { setting.BoolFlag(flags, &o.json, "json", "answer as JSON") },
		Run:          func(ctx context.Context, args []string) error { return diff(ctx, p, o, kept, args[0]) },
		DataOptional: true,
	}.Command(p)
}

func diff(ctx context.Context, p *process.Process, o *options, kept *archiveOptions, file string) error {
	dir, err := kept.existing()
	if err != nil {
		return err
	}
	today, err := o.open()
	if err != nil {
		return err
	}
	changed, err := loadChanged(today, file)
	if err != nil {
		return err
	}
	before, known := today.Sources.Find(changed.ID)
	entries, problems := archive.Dir(dir).At(changed.ID, time.Time{})
	c := newComparison(changed.ID, dir, problems)
	var lost []string
	for i := range entries {
		entry := &entries[i]
		if ctx.Err() != nil {
			return exit.Errorf(exit.Interrupted, "interrupted while reading documents")
		}
		c.add(entry, func(document *source.Document) (old, updated reading) {
			if old = (reading{Failure: "there is no such source"}); known {
				old = read(before, entry, document)
			}
			if updated = read(changed, entry, document); old.Failure == "" && updated.Failure != "" {
				lost = append(lost, updated.Failure)
			}
			return old, updated
		})
	}
	if err := c.print(p, o.json, "TODAY", "CHANGED"); err != nil {
		return err
	}
	switch {
	case len(entries) == 0:
		return exit.Errorf(exit.NoInput, "%s has no document of %s; keep some with tasard sources check --save", dir, changed.ID)
	case len(lost) > 0:
		return exit.Errorf(exit.NoInput, "%s: can't read %s of %s: %s", file, terminal.Plural(len(lost), "document"), changed.ID, strings.Join(lost, "; "))
	}
	return nil
}

// loadChanged reads a definition file and returns the definition that it defines or changes.
func loadChanged(today node.ReferenceData, path string) (*source.Definition, error) {
	directory, name := filepath.Split(path)
	files := singleFile{os.DirFS(filepath.Join(directory, ".")), name}
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, exit.Errorf(exit.NoInput, "read the definition: %w", err)
	}
	set, err := today.Sources.Extend(files, ".")
	if err == nil {
		err = set.Check(today.Catalogue)
	}
	var file struct {
		ID string `json:"id"`
	}
	if err = errors.Join(err, json.Unmarshal(data, &file)); err != nil {
		return nil, exit.Errorf(exit.BadData, "read the definition: %w", err)
	}
	d, known := set.Find(file.ID)
	if !known {
		return nil, exit.Errorf(exit.BadData, "%s: not a definition file; its name must end in .json", path)
	}
	return d, nil
}

// singleFile is a directory in which only one file is listed. Files that it names, such as certificates, can be opened.
type singleFile struct {
	fs.FS
	name string
}

// ReadDir implements fs.ReadDirFS.
func (s singleFile) ReadDir(string) ([]fs.DirEntry, error) {
	info, err := fs.Stat(s.FS, s.name)
	if err != nil {
		return nil, err
	}
	return []fs.DirEntry{fs.FileInfoToDirEntry(info)}, nil
}
