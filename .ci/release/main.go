package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// architectures returns the GOARCH names of the released architectures.
func architectures() []string { return []string{"amd64", "arm64"} }

// release is one run of this command.
type release struct {
	source   *source
	work     string // scratch directory, removed at the end
	out      string
	progress io.Writer
	started  time.Time
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(progress)
	repository := flags.String("repository", ".", "the repository `DIR`")
	version := flags.String("version", "", "`X.Y.Z`; by default the version in the commit's tag")
	commit := flags.String("commit", "HEAD", "the commit to release")
	out := flags.String("out", "dist", "the output `DIR`, which must be new or empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "tasard-release-")
	if err != nil {
		return fmt.Errorf("make a scratch directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	r := &release{work: work, out: *out, progress: progress, started: time.Now()}
	if err := r.begin(ctx, *repository, *version, *commit); err != nil {
		return err
	}
	return r.make(ctx)
}

// begin checks that the output directory is usable, and clones the commit.
func (r *release) begin(ctx context.Context, repository, version, commit string) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return fmt.Errorf("make the output directory: %w", err)
	}
	switch entries, err := os.ReadDir(r.out); {
	case err != nil:
		return fmt.Errorf("read the output directory: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("%s: not empty; remove it, or name another one with -out", r.out)
	}
	var err error
	if r.source, err = openSource(ctx, repository, version, commit, filepath.Join(r.work, "source")); err != nil {
		return err
	}
	r.step("tasard %s, commit %.12s of %s", r.source.version, r.source.commit, r.source.time.Format(time.DateTime))
	if r.source.dirty {
		r.step("NOTE: uncommitted changes are not in the release")
	}
	return nil
}

// make builds all files of the release. It writes SHA256SUMS last, so that an incomplete release has no SHA256SUMS. It
// builds the programs before it writes files into the clone of the commit: otherwise the go command would record in the
// programs that their source was modified.
func (r *release) make(ctx context.Context) error {
	host, programs, err := r.programs(ctx)
	if err != nil {
		return err
	}
	if err := r.documents(ctx, host); err != nil {
		return err
	}
	for i := range programs {
		p := &programs[i]
		for _, step := range []func(*program) error{r.stage, r.archive, r.deb, r.sbom} {
			if err := step(p); err != nil {
				return err
			}
		}
	}
	if err := r.image(programs); err != nil {
		return err
	}
	return r.sums()
}

func (r *release) step(format string, args ...any) {
	_, _ = fmt.Fprintf(r.progress, "release +%3.0fs  %s\n", time.Since(r.started).Seconds(), fmt.Sprintf(format, args...))
}

// write writes a file of the release.
func (r *release) write(name string, data []byte) error {
	if err := os.WriteFile(filepath.Join(r.out, name), data, modeFile); err != nil {
		return fmt.Errorf("write the release: %w", err)
	}
	return nil
}

// sums writes SHA256SUMS, in the format of sha256sum.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out) // sorted by name
	if err != nil {
		return fmt.Errorf("list the release: %w", err)
	}
	var text strings.Builder
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return fmt.Errorf("read the release: %w", err)
		}
		_, _ = fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), entry.Name())
	}
	r.step("%s has %d files; sha256sum -c SHA256SUMS checks them", r.out, len(entries)+1)
	_, _ = io.WriteString(r.progress, text.String())
	return r.write("SHA256SUMS", []byte(text.String()))
}
