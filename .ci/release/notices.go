package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// linkedModule is a module whose code or files are in the program. Go's standard library counts as a module.
type linkedModule struct {
	path, version, dir string
	title              string // name in the notices; "" means path
	url                string // package URL (purl)
	sum                string // checksum from go.sum; "" if it is not a Go module
	licence            string // an SPDX expression
}

// embedded is the directory of Swagger UI, which is embedded in the program. The script .ci/docs-assets downloads it.
const embedded = "httpapi/pages/docs/vendored"

// linked returns the modules that are linked into a program or embedded in it. It asks the go command for their
// directories, and .ci/licences for their licences. A module without a directory or without a licence is an error.
func (r *release) linked(ctx context.Context, arch string, deps []*debug.Module) ([]linkedModule, error) {
	environ := toolchain("linux", arch)
	const form = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"
	out, err := command(ctx, r.source.dir, environ, "go", "list", "-deps", "-f", form, ".")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{} // path@version → dir
	for line := range strings.Lines(string(out)) {
		if fields := strings.Split(strings.TrimSpace(line), "\t"); len(fields) == 3 {
			dirs[fields[0]+"@"+fields[1]] = fields[2]
		}
	}
	table, err := command(ctx, r.source.dir, environ, ".ci/licences")
	if err != nil {
		return nil, err
	}
	licences := licencesOf(string(table))
	var modules []linkedModule
	for _, m := range deps {
		id := m.Path + "@" + m.Version
		dir, licence := dirs[id], licences[id]
		if dir == "" || licence == "" {
			return nil, fmt.Errorf("find the licence of %s, which is in the program: directory %q, licence %q", id, dir, licence)
		}
		modules = append(modules, linkedModule{
			path: m.Path, version: m.Version, dir: dir, url: "pkg:golang/" + m.Path + "@" + m.Version, sum: m.Sum, licence: licence,
		})
	}
	version, err := r.source.read(embedded + "/VERSION")
	if err != nil {
		return nil, err
	}
	number := strings.TrimSpace(string(version))
	modules = append(modules, linkedModule{
		path: "swagger-ui-dist", version: number, dir: r.source.path(embedded),
		url: "pkg:npm/swagger-ui-dist@" + number, licence: "Apache-2.0",
	})
	slices.SortFunc(modules, func(a, b linkedModule) int { return strings.Compare(a.path, b.path) })
	root, err := command(ctx, "", environ, "go", "env", "GOROOT")
	library := linkedModule{
		path: "std", version: runtime.Version(), title: "Go, its standard library and runtime", dir: strings.TrimSpace(string(root)),
		url: "pkg:golang/std@" + strings.TrimPrefix(runtime.Version(), "go"), licence: "BSD-3-Clause",
	}
	return append([]linkedModule{library}, modules...), err
}

// licencesOf parses the output of .ci/licences. Each line has the licences (separated by commas), module and version.
// The keys of the result are module@version.
func licencesOf(table string) map[string]string {
	licences := map[string]string{}
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) == 3 && strings.HasPrefix(fields[2], "v") {
			licences[fields[1]+"@"+fields[2]] = strings.Join(strings.Split(fields[0], ","), " AND ")
		}
	}
	return licences
}

// notices returns the text of all licences and notices. This text must accompany every copy of the program.
func notices(modules []linkedModule) ([]byte, error) {
	var text bytes.Buffer
	text.WriteString("Licences and notices of the modules linked into tasard.\n")
	for _, m := range modules {
		found, err := legalFiles(m.dir)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s %s has no licence file in %s", m.path, m.version, m.dir)
		}
		_, _ = fmt.Fprintf(&text, "\n%s\n%s %s (%s)\n%[1]s\n", strings.Repeat("=", 72), cmp.Or(m.title, m.path), m.version, m.licence)
		for _, data := range found {
			text.WriteString("\n")
			text.Write(bytes.TrimSpace(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))))
			text.WriteString("\n")
		}
	}
	return text.Bytes(), nil
}

// legalFiles returns the contents of the licence and notice files in a module's root directory.
func legalFiles(dir string) ([][]byte, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("list licences: %w", err)
	}
	form := regexp.MustCompile(`(?i)(^|\.)(licen[cs]e|copying|unlicense|notice|patents)`)
	var found [][]byte
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !form.MatchString(entry.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read a licence: %w", err)
		}
		found = append(found, data)
	}
	return found, nil
}
