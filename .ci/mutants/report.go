package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// What became of a mutant.
const (
	killed   = "killed"
	timedOut = "timed out"
	survived = "survived"
	unseen   = "not reached"
	notBuilt = "not built"
)

// verdict is what the tests say of a mutant.
type verdict struct {
	State string
	By    string `json:",omitempty"`
}

// results are kept between calls, for one state of the files.
type results struct {
	Digest   string
	Verdicts map[string]verdict
	path     string
}

func openResults(path, digest string, fresh bool) *results {
	r := &results{}
	if text, err := os.ReadFile(path); err != nil || fresh || json.Unmarshal(text, r) != nil || r.Digest != digest {
		r = &results{}
	}
	r.Digest, r.path = digest, path
	if r.Verdicts == nil {
		r.Verdicts = map[string]verdict{}
	}
	return r
}

// found says that a mutant need not be tried again.
func (r *results) found(key string) bool {
	s := r.Verdicts[key].State
	return s == killed || s == timedOut || s == notBuilt
}

func (r *results) save() error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(r.path), 0o750); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.WriteFile(r.path, text, 0o600); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// readEquivalents reads lines "key :: reason".
func readEquivalents(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the equivalent mutants: %w", err)
	}
	known := map[string]string{}
	for number, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, reason, ok := strings.Cut(line, " :: ")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: want: mutant :: reason", path, number+1)
		}
		known[key] = reason
	}
	return known, nil
}

// score counts one group.
type score struct {
	name                                        string
	all, mutants, killed, timedOut, equivalents int
	lines                                       []string // what was not found
	wrong                                       []string // entries of the list that do not hold
}

// count holds the mutants that were drawn against what was found; an entry of the list must be one of all.
func count(dir string, all, drawn []*mutant, kept *results, known map[string]string) (*score, error) {
	s := &score{name: dir}
	used, files := map[string]bool{}, map[string]bool{}
	for _, m := range all {
		used[m.key] = !m.broken
		files[m.file.name] = true
	}
	s.all = len(all)
	for _, m := range drawn {
		v := kept.Verdicts[m.key]
		if m.broken || v.State == notBuilt {
			continue
		}
		_, equivalent := known[m.key]
		s.mutants++
		switch {
		case equivalent && (v.State == killed || v.State == timedOut):
			s.wrong = append(s.wrong, fmt.Sprintf("listed as equivalent, but %s by %s: %s", v.State, v.By, m.key))
		case equivalent:
			s.mutants--
			s.equivalents++
		case v.State == killed:
			s.killed++
		case v.State == timedOut:
			s.timedOut++
		default:
			s.lines = append(s.lines, fmt.Sprintf("%-11s %s:%d  %s", v.State, m.file.name, m.line, m.key))
		}
	}
	for key := range known {
		if name, _, _ := strings.Cut(key, " "); files[name] && !used[key] {
			s.wrong = append(s.wrong, "listed as equivalent, but there is no such mutant: "+key)
		}
	}
	sort.Strings(s.wrong)
	return s, nil
}

func (s *score) add(o *score) {
	s.all += o.all
	s.mutants += o.mutants
	s.killed += o.killed
	s.timedOut += o.timedOut
	s.equivalents += o.equivalents
	s.lines = append(s.lines, o.lines...)
	s.wrong = append(s.wrong, o.wrong...)
}

// print writes the table; a score that is too low is an error.
func (s *score) print(w io.Writer) error {
	for _, line := range append(s.lines, s.wrong...) {
		fmt.Fprintln(w, line)
	}
	if s.mutants == 0 {
		return errors.New("no mutant was planted")
	}
	found := s.killed + s.timedOut
	tenths := 1000 * found / s.mutants
	fmt.Fprintf(w, "group\tplanted\tof\tkilled\tsurvived\ttimed out\tequivalent\tscore\n%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d.%d %%\n",
		s.name, s.mutants, s.all, s.killed, len(s.lines), s.timedOut, s.equivalents, tenths/10, tenths%10)
	if len(s.wrong) > 0 {
		return errors.New("equivalent.txt does not hold")
	}
	if tenths < 10*scoreMin {
		return fmt.Errorf("the tests find %d.%d %% of the mutants, want at least %d %%", tenths/10, tenths%10, scoreMin)
	}
	return nil
}
