package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// nfpmFile describes the package; what is not said there is said here.
const nfpmFile = "packaging/nfpm.yaml"

// deb makes the Debian package.
func (r *release) deb(_ context.Context, p program, papers []file) error {
	r.step("linux/%s: Debian package", p.arch)
	stage, err := r.stageDeb(p, papers)
	if err != nil {
		return err
	}
	config, err := nfpm.ParseFileWithEnvMapping(filepath.Join(r.source.dir, filepath.FromSlash(nfpmFile)), func(name string) string {
		return map[string]string{"ARCH": p.arch, "VERSION": r.source.version}[name]
	})
	if err != nil {
		return fmt.Errorf("%s: %w", nfpmFile, err)
	}
	info, err := config.Get("deb")
	if err != nil {
		return fmt.Errorf("%s: %w", nfpmFile, err)
	}
	info.MTime = r.source.time
	more, err := r.debExamples()
	if err != nil {
		return err
	}
	place := func(name string) string {
		if strings.HasPrefix(name, "packaging/") {
			return filepath.Join(r.source.dir, filepath.FromSlash(name))
		}
		return filepath.Join(stage, filepath.FromSlash(name))
	}
	for _, script := range []*string{&info.Scripts.PostInstall, &info.Scripts.PreRemove, &info.Scripts.PostRemove} {
		*script = place(*script)
	}
	for _, content := range info.Contents {
		content.Source = place(content.Source)
	}
	info.Contents = append(info.Contents, more...)
	for _, content := range info.Contents {
		content.FileInfo = withRights(content.FileInfo)
	}
	info = nfpm.WithDefaults(info)
	if err := info.Validate(); err != nil {
		return fmt.Errorf("%s: %w", nfpmFile, err)
	}
	var packed bytes.Buffer
	if err := deb.Default.Package(info, &packed); err != nil {
		return fmt.Errorf("make the Debian package: %w", err)
	}
	return r.write(deb.Default.ConventionalFileName(info), packed.Bytes())
}

// withRights are the owner and the mode of a file of the package, whatever those of the machine are.
func withRights(said *files.ContentFileInfo) *files.ContentFileInfo {
	rights := files.ContentFileInfo{}
	if said != nil {
		rights = *said
	}
	rights.Owner, rights.Group = cmp.Or(rights.Owner, "root"), cmp.Or(rights.Group, "root")
	rights.Mode = cmp.Or(rights.Mode, os.FileMode(modeFile))
	return &rights
}

// stageDeb writes the files that are not in the commit, compressed where Debian wants that.
func (r *release) stageDeb(p program, papers []file) (string, error) {
	changes, err := r.source.read("CHANGELOG.md")
	if err != nil {
		return "", err
	}
	readme, err := r.source.read("README.md")
	if err != nil {
		return "", err
	}
	debian, err := debianChangelog(string(changes), r.source.version, r.source.time)
	if err != nil {
		return "", err
	}
	staged := []file{{name: "tasard", data: p.data}}
	for name, data := range map[string][]byte{
		"LICENSES.gz": p.notices, "README.md.gz": readme, "changelog.gz": changes, "changelog.Debian.gz": debian,
	} {
		compressed, err := zipped(data)
		if err != nil {
			return "", err
		}
		staged = append(staged, file{name: name, data: compressed})
	}
	for _, f := range papers {
		if strings.HasPrefix(f.name, "man/") {
			compressed, err := zipped(f.data)
			if err != nil {
				return "", err
			}
			f = file{name: f.name + ".gz", data: compressed}
		}
		staged = append(staged, f)
	}
	var stage string
	for _, f := range staged {
		at, err := r.staged(path.Join(p.arch, f.name), f.data)
		if err != nil {
			return "", err
		}
		stage = strings.TrimSuffix(at, filepath.FromSlash("/"+f.name))
	}
	return stage, nil
}

// debExamples are the dashboards and alerts of the commit.
func (r *release) debExamples() (files.Contents, error) {
	found, err := r.source.examples()
	if err != nil {
		return nil, err
	}
	var contents files.Contents
	for _, f := range found {
		at, err := r.staged(f.name, f.data)
		if err != nil {
			return nil, err
		}
		contents = append(contents, &files.Content{Source: at, Destination: path.Join("/usr/share/doc/tasard", f.name)})
	}
	return contents, nil
}
