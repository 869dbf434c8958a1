package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// buildTries bounds how often mutants that do not compile are taken out.
const buildTries = 12

// binaries are the test binaries of a package.
type binaries struct {
	pkg  *checked
	work string
	all  string // with every switch
}

// build makes the binary with all switches. Mutants that do not compile are none and are taken out.
func build(ctx context.Context, c *checked, sites []*site, mutants []*mutant, work string) (*binaries, error) {
	b := &binaries{pkg: c, work: work, all: filepath.Join(work, "all.test")}
	byID := map[int]*mutant{}
	for _, m := range mutants {
		byID[m.id] = m
	}
	for range buildTries {
		texts := map[string]string{}
		for _, f := range c.files {
			if f.wanted {
				texts[f.path] = render(c, f, sites)
			}
		}
		texts[filepath.Join(filepath.Dir(c.files[0].path), "zz_mutants.go")] = fmt.Sprintf(switchSource, c.types.Name())
		output, err := b.compile(ctx, "all", texts, b.all)
		if err == nil {
			return b, nil
		}
		if ctx.Err() != nil || !takeOut(b.changed("all"), output, byID) {
			return nil, fmt.Errorf("build with mutants: %w\n%s", err, output)
		}
	}
	return nil, errors.New("the mutants do not compile, however many are taken out")
}

func (b *binaries) changed(name string) string { return filepath.Join(b.work, name) }

// compile builds the test binary with some files replaced.
func (b *binaries) compile(ctx context.Context, name string, texts map[string]string, to string) ([]byte, error) {
	dir := b.changed(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	replace := map[string]string{}
	for original, text := range texts {
		path := filepath.Join(dir, filepath.Base(original))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write a mutant: %w", err)
		}
		replace[original] = path
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return nil, fmt.Errorf("write the overlay: %w", err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return nil, fmt.Errorf("write the overlay: %w", err)
	}
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", list, "-o", to, "./"+b.pkg.dir).CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("go test -c: %w", err)
	}
	return out, nil
}

// constant builds the binary of one changed constant.
func (b *binaries) constant(ctx context.Context, m *mutant) (string, error) {
	offset := func(at int) int { return at }
	from, to := offset(b.pkg.fset.Position(m.from).Offset), offset(b.pkg.fset.Position(m.to).Offset)
	text := string(m.file.text[:from]) + m.text + string(m.file.text[to:])
	name := "constant" + strconv.Itoa(m.id)
	path := filepath.Join(b.work, name+".test")
	_, err := b.compile(ctx, name, map[string]string{m.file.path: text}, path)
	return path, err
}

// takeOut marks the mutants in the lines that the compiler names, and says whether there were any.
func takeOut(dir string, output []byte, byID map[int]*mutant) bool {
	place := regexp.MustCompile(`([^/\s]+\.go):(\d+):(\d+): `)
	number := regexp.MustCompile(`mutant__\((\d+)\)`)
	found := false
	for _, at := range place.FindAllSubmatch(output, -1) {
		text, err := os.ReadFile(filepath.Join(dir, string(at[1])))
		if err != nil {
			continue
		}
		line, _ := strconv.Atoi(string(at[2]))
		column, _ := strconv.Atoi(string(at[3]))
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, len(text)+1)
		last := ""
		for n := 1; n <= line && lines.Scan(); n++ {
			row := lines.Text()
			if n == line {
				row = row[:min(column, len(row))]
			}
			if ids := number.FindAllStringSubmatch(row, -1); len(ids) > 0 {
				last = ids[len(ids)-1][1]
			}
		}
		if id, err := strconv.Atoi(strings.TrimSpace(last)); err == nil && byID[id] != nil && !byID[id].broken {
			byID[id].broken = true
			found = true
		}
	}
	return found
}
