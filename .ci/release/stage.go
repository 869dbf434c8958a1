package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// stage writes the generated files for one architecture into the clone of the commit. The archive and the Debian
// package (nfpmFile) take them from there. stage compresses documents, because Debian requires that.
func (r *release) stage(p *program) error {
	stanza := fmt.Sprintf("tasard (%s-1) stable; urgency=medium\n\n  * Release %s: changelog.gz beside this file tells what changed.\n\n -- %s  %s\n",
		strings.Replace(r.source.version, "-", "~", 1), r.source.version, "The tasard authors <tasard@users.noreply.github.com>", r.source.time.Format(time.RFC1123Z))
	install, err := r.source.read("packaging/README.md")
	if err != nil {
		return err
	}
	staged := map[string][]byte{"INSTALL.md": install, "tasard": p.data, "LICENSES": p.notices, "changelog.Debian": []byte(stanza)}
	for name, data := range staged {
		if err := r.source.write(name, data); err != nil {
			return err
		}
	}
	pages, _ := filepath.Glob(r.source.path("man/*.1")) // the pattern is well-formed
	documents := map[string]string{"LICENSES": "LICENSES.gz", "README.md": "README.md.gz", "CHANGELOG.md": "changelog.gz", "changelog.Debian": "changelog.Debian.gz"}
	for _, page := range pages {
		documents["man/"+filepath.Base(page)] = "man/" + filepath.Base(page) + ".gz"
	}
	for from, to := range documents {
		data, err := r.source.read(from)
		if err == nil {
			data, err = compress(data)
		}
		if err == nil {
			err = r.source.write(to, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// archived returns the contents of the archive. It maps each folder of the archive to patterns, which match the paths
// of its files in the clone. The archive has everything that is needed to install the program by hand.
func archived() map[string][]string {
	return map[string][]string{
		"":                    {"tasard", "LICENSES", "README.md", "CHANGELOG.md", "LICENSE", "packaging/tasard.toml", "INSTALL.md"},
		"systemd":             {"packaging/systemd/*"},
		"completions":         {"completions/*"},
		"man":                 {"man/*.1"},
		"docs":                {"docs/*.md"},
		"docs/images":         {"docs/images/*"},
		"examples/cluster":    {"packaging/cluster/*"},
		"examples/grafana":    {"packaging/grafana/*"},
		"examples/prometheus": {"packaging/prometheus/*"},
	}
}

func (r *release) archive(p *program) error {
	r.step("linux/%s: archive", p.arch)
	top := r.name(p)
	files := []file{{name: top + "/"}}
	for folder, patterns := range archived() {
		for _, pattern := range patterns {
			found, _ := filepath.Glob(r.source.path(pattern)) // the patterns are well-formed
			if len(found) == 0 {
				return fmt.Errorf("fill the archive: no file matches %s", pattern)
			}
			for _, from := range found {
				data, err := os.ReadFile(from)
				if err != nil {
					return fmt.Errorf("fill the archive: %w", err)
				}
				f := file{name: path.Join(top, folder, filepath.Base(from)), data: data}
				if f.name == path.Join(top, "tasard") {
					f.mode = modeProgram
				}
				files = append(files, f)
			}
		}
	}
	var tarred bytes.Buffer
	if err := writeTar(&tarred, sorted(files), r.source.time); err != nil {
		return err
	}
	compressed, err := compress(tarred.Bytes())
	if err != nil {
		return err
	}
	return r.write(top+".tar.gz", compressed)
}
