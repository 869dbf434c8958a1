package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// examples are the folders of packaging that are for other programs than the node's own service: dashboards, alerts.
func examples() []string { return []string{"packaging/grafana", "packaging/prometheus"} }

// archive makes the .tar.gz: the program and all that a person needs to install it by hand.
func (r *release) archive(_ context.Context, p program, papers []file) error {
	r.step("linux/%s: archive", p.arch)
	files := []file{
		{name: "tasard", data: p.data, mode: modeProgram},
		{name: "LICENSES", data: p.notices},
	}
	for name, from := range map[string]string{
		"README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md", "LICENSE": "LICENSE",
		"tasard.toml":            "packaging/tasard.toml",
		"systemd/tasard.service": "packaging/systemd/tasard.service", "systemd/tasard.sysusers": "packaging/systemd/tasard.sysusers",
	} {
		data, err := r.source.read(from)
		if err != nil {
			return err
		}
		files = append(files, file{name: name, data: data})
	}
	more, err := r.source.examples()
	if err != nil {
		return err
	}
	files = append(append(files, papers...), more...)
	top := r.name(p) + "/"
	packed := []file{{name: top}}
	for _, f := range sorted(files) {
		f.name = top + f.name
		packed = append(packed, f)
	}
	var tarred bytes.Buffer
	if err := writeTar(&tarred, packed, r.source.time); err != nil {
		return err
	}
	compressed, err := zipped(tarred.Bytes())
	if err != nil {
		return err
	}
	return r.write(r.name(p)+".tar.gz", compressed)
}

// examples are the files of the folders of examples, as examples/NAME. A commit may have none.
func (s *source) examples() ([]file, error) {
	var files []file
	for _, folder := range examples() {
		err := fs.WalkDir(os.DirFS(s.dir), folder, func(name string, entry fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := s.read(name)
			files = append(files, file{name: path.Join("examples", strings.TrimPrefix(name, "packaging/")), data: data})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("gather %s: %w", folder, err)
		}
	}
	return files, nil
}

// write makes a file of the release.
func (r *release) write(name string, data []byte) error {
	if err := os.WriteFile(r.path(name), data, modeFile); err != nil {
		return fmt.Errorf("write the release: %w", err)
	}
	return nil
}

// staged puts data into a file of the place of work, for a library that wants files.
func (r *release) staged(name string, data []byte) (string, error) {
	at := filepath.Join(r.work, "stage", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), modeDir); err != nil {
		return "", fmt.Errorf("stage %s: %w", name, err)
	}
	if err := os.WriteFile(at, data, modeFile); err != nil {
		return "", fmt.Errorf("stage %s: %w", name, err)
	}
	return at, nil
}
