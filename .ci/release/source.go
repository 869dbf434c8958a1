package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// source is a clone of the commit to release.
type source struct {
	dir     string
	version string // version without the v of its tag
	commit  string
	time    time.Time // time of the commit, which every file in the release gets
	dirty   bool      // the work tree has uncommitted changes
}

// versionForm matches semantic versions. It allows no build metadata, because Debian packages and image tags cannot
// have any.
const versionForm = `^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z]+(\.[0-9A-Za-z]+)*)?$`

// openSource clones the commit and tags the clone with the version. If version is "", it uses the tag of the commit.
func openSource(ctx context.Context, repository, version, commit, dir string) (*source, error) {
	s := &source{dir: dir, version: version}
	var err error
	if s.commit, err = git(ctx, repository, "rev-parse", "--verify", "--quiet", commit+"^{commit}"); err != nil {
		return nil, fmt.Errorf("find commit %s in %s: %w", commit, repository, err)
	}
	if err := s.findVersion(ctx, repository); err != nil {
		return nil, err
	}
	seconds, err := git(ctx, repository, "show", "--no-patch", "--format=%ct", s.commit)
	if err != nil {
		return nil, err
	}
	epoch, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the time of commit %s: %w", s.commit, err)
	}
	s.time = time.Unix(epoch, 0).UTC()
	changes, err := git(ctx, repository, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return nil, err
	}
	s.dirty = changes != ""
	return s, s.clone(ctx, repository)
}

// findVersion takes the version from the commit's tag if no version was given. If a version was given, and its tag is
// on another commit, findVersion returns an error.
func (s *source) findVersion(ctx context.Context, repository string) error {
	if s.version == "" {
		tag, err := git(ctx, repository, "describe", "--exact-match", "--tags", "--match", "v[0-9]*", s.commit)
		if err != nil {
			return fmt.Errorf("commit %.12s has no tag like v1.2.3; tag it, or give VERSION=1.2.3", s.commit)
		}
		s.version = strings.TrimPrefix(tag, "v")
	}
	if !regexp.MustCompile(versionForm).MatchString(s.version) {
		return fmt.Errorf("version %q: want one like 1.2.3 or 1.2.3-rc.1", s.version)
	}
	tagged, err := git(ctx, repository, "rev-parse", "--verify", "--quiet", "refs/tags/v"+s.version+"^{commit}")
	if err == nil && tagged != s.commit {
		return fmt.Errorf("the tag v%s is on commit %.12s, and %.12s is to be released; release that commit, or choose another version",
			s.version, tagged, s.commit)
	}
	return nil
}

// clone clones only the commit, and adds the tag of the released version. It clones no other tags, because they could
// change the version that the go command puts into the program.
func (s *source) clone(ctx context.Context, repository string) error {
	from, err := filepath.Abs(repository)
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", s.dir},
		{"-C", s.dir, "fetch", "--quiet", "--no-tags", "--depth=1", from, s.commit},
		{"-C", s.dir, "checkout", "--quiet", "--detach", s.commit},
		{"-C", s.dir, "tag", "--no-sign", "v" + s.version},
	} {
		if _, err := command(ctx, "", nil, "git", append([]string{"-c", "advice.detachedHead=false", "-c", "core.autocrlf=false"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *source) read(name string) ([]byte, error) {
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		return nil, fmt.Errorf("read a file of the commit: %w", err)
	}
	return data, nil
}

func (s *source) write(name string, data []byte) error {
	if err := errors.Join(os.MkdirAll(filepath.Dir(s.path(name)), modeDir), os.WriteFile(s.path(name), data, modeFile)); err != nil {
		return fmt.Errorf("stage %s: %w", name, err)
	}
	return nil
}

// git runs git in a repository and returns its output without surrounding white space.
func git(ctx context.Context, repository string, args ...string) (string, error) {
	out, err := command(ctx, repository, nil, "git", args...)
	return strings.TrimSpace(string(out)), err
}

// command runs a program and returns its standard output. It adds environ to the environment. The returned error
// includes what the program wrote to standard error.
func command(ctx context.Context, dir string, environ []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
