package tidy_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// TestMain runs the tests in the root of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Limits of style. What does not fit is cut where the concern changes, not
// where the line count ends.
const (
	functionLinesMax = 70
	fileLinesMax     = 400
	testLinesMax     = 600 // tables and golden cases are long, not deep
	docLinesMin      = 5   // a package's doc.go says its limits, not only its name
)

// goroutineFiles lists the files that may start goroutines, each with the
// owner that waits for them. Tests are free: goleak watches them.
func goroutineFiles() map[string]string {
	return map[string]string{
		"actors/breath.go":             "Breath.End, by whoever took breath",
		"actors/cluster/crew.go":       "crew.wait, in Cluster.Close",
		"actors/cluster/server.go":     "embedded.stop, in Cluster.Close",
		"actors/follower.go":           "follower.end, in System.Close",
		"actors/mail/mailer.go":        "Mailer.Close, which waits for the worker",
		"actors/mail/session.go":       "whoever called closeAtEnd, by what it returns",
		"actors/postman.go":            "postman.end, in System.Close",
		"actors/relief.go":             "relief.stop, at the end of System.Close",
		"httpapi/conn/overload.go":     "Overload.End: stops the timer, whose call finds nothing to do then",
		"httpapi/conn/rounds.go":       "rounds.end: waits for the goroutine that ends rounds",
		"actors/replay.go":             "replayer.run: waits for the goroutine that applies",
		"actors/snapshot.go":           "keeper.stop, in System.Close",
		"actors/sweeper.go":            "sweeper.end, in System.Close",
		"actors/system.go":             "System.Close: waits for the replay",
		"actors/writer.go":             "writer.stop, in System.Close",
		".ci/mutants/run.go":           "each: waits for every mutant",
		"backup.go":                    "none runs on: nodeCopy.close stops the timer",
		"bench/bare.go":                "serveUntil: waits for the server's accept loop",
		"bench/process.go":             "child.stop or kill: waits for the end of the process",
		"bench/goals_refresh.go":       "lab.refreshed: waits for what it said",
		"bench/profile.go":             "lab.profiled: waits for the profile",
		"collect.go":                   "collection.stop: waits for the collector",
		"collectors/collector.go":      "Collector.Run: waits for every source",
		"collectors/simulated/site.go": "Site.Close: waits for the accept loops and for every connection",
		"sources_check.go":             "checkAll: waits for every check",
		"doctor_transition.go":         "ask: waits for the server's end of the connection",
		"demo_end.go":                  "demoEnd.release, at the end of the demo",
		"httpapi/apitest/hall.go":      "hall.close: waits for the accept loop and for every connection",
		"input.go":                     "the context of the command: only one that reads stdin may outlive it",
		"main.go":                      "none is waited for: it gives the second signal its usual effect, then ends",
		"management.go":                "management.stop: the server's accept loop",
		"management_backup.go":         "none runs on: management.backup stops the timer",
		"mcp.go":                       "mcpOverHTTP: waits for the server's accept loop",
		"metrics_listen.go":            "exposition.stop: the server's accept loop",
		"mock.go":                      "mockControl.stop: the control server's accept loop",
		"node.go":                      "front.stop: the server's accept loop",
		"notify.go":                    "notifier.end, in service.stop",
		"serve.go":                     "takeInBeside: waits for the import",
	}
}

// exactFolders hold money: no binary fraction may enter them.
func exactFolders() []string {
	return []string{"engine", "actors", "httpapi", "httpapi/apitest", "httpapi/client", "httpapi/mcp", "httpapi/pages", "collectors"}
}

// source is one Go file of the tree.
type source struct {
	path string // with slashes, relative to the root
	text string
	set  *token.FileSet
	file *ast.File
}

func (s source) isTest() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) isGenerated() bool { return strings.HasSuffix(s.path, ".pb.go") }

// at names the position of a node for the reader of a problem.
func (s source) at(node ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.set.Position(node.Pos()).Line)
}

// fileChecks are the checks that need one Go file; each returns its problems.
func fileChecks() map[string]func(source) []string {
	return map[string]func(source) []string{
		"function length": longFunctions,
		"file length":     longFile,
		"goroutines":      hiddenGoroutines,
		"binary floats":   binaryFloats,
		"unfinished work": unfinishedComments,
		"sleeping tests":  sleeps,
		"init functions":  initFunctions,
	}
}

func TestTidy_Sources(t *testing.T) {
	sources := readSources(t)
	for name, check := range fileChecks() {
		t.Run(name, func(t *testing.T) {
			for _, s := range sources {
				for _, problem := range check(s) {
					t.Error(problem)
				}
			}
		})
	}
}

func TestTidy_Tree(t *testing.T) {
	sources := readSources(t)
	problems := slices.Concat(missingDocs(sources), staleGoroutineFiles(sources, goroutineFiles()))
	for _, name := range files() {
		if text := readText(t, name); utf8.ValidString(text) { // else a sample in another encoding, or not text
			problems = append(problems, textProblems(name, text)...)
		}
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

func longFunctions(s source) []string {
	if s.isGenerated() {
		return nil
	}
	var problems []string
	for _, declaration := range s.file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := s.set.Position(function.End()).Line - s.set.Position(function.Pos()).Line + 1
		if lines > functionLinesMax {
			problems = append(problems, fmt.Sprintf("%s: function %s has %d lines, at most %d", s.at(function), function.Name.Name, lines, functionLinesMax))
		}
	}
	return problems
}

func longFile(s source) []string {
	limit := fileLinesMax
	if s.isTest() {
		limit = testLinesMax
	}
	lines := strings.Count(s.text, "\n")
	if s.isGenerated() || lines <= limit {
		return nil
	}
	return []string{fmt.Sprintf("%s: %d lines, at most %d", s.path, lines, limit)}
}

// hiddenGoroutines finds what starts a goroutine: go statements, the Go method
// of wait groups, and the functions that timers and contexts call later.
func hiddenGoroutines(s source) []string {
	if _, listed := goroutineFiles()[s.path]; listed || s.isTest() {
		return nil
	}
	var problems []string
	for _, node := range goroutineStarts(s) {
		problems = append(problems, s.at(node)+": starts a goroutine; name its owner in goroutineFiles (tidy_test.go) or do without")
	}
	return problems
}

func goroutineStarts(s source) []ast.Node {
	var starts []ast.Node
	ast.Inspect(s.file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GoStmt:
			starts = append(starts, n)
		case *ast.CallExpr:
			if selector, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 0 {
				if name := selector.Sel.Name; name == "Go" || name == "AfterFunc" {
					starts = append(starts, n)
				}
			}
		}
		return true
	})
	return starts
}

// staleGoroutineFiles finds entries of the list whose file starts nothing (any
// more), so that the list stays worth reading.
func staleGoroutineFiles(sources []source, listed map[string]string) []string {
	starting := map[string]bool{}
	for _, s := range sources {
		starting[s.path] = len(goroutineStarts(s)) > 0
	}
	var problems []string
	for name, owner := range listed {
		if !starting[name] {
			problems = append(problems, name+": is in goroutineFiles but starts no goroutine")
		}
		if owner == "" {
			problems = append(problems, name+": is in goroutineFiles without an owner")
		}
	}
	return problems
}

// binaryFloats finds the float types, the literals that would become one
// without naming it, and the functions that make one out of text.
func binaryFloats(s source) []string {
	if s.isTest() || s.isGenerated() || !slices.Contains(exactFolders(), path.Dir(s.path)) {
		return nil
	}
	var problems []string
	report := func(node ast.Node, what string) {
		problems = append(problems, fmt.Sprintf("%s: %s in a folder that holds exact money", s.at(node), what))
	}
	ast.Inspect(s.file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.Ident:
			if slices.Contains([]string{"float32", "float64", "complex64", "complex128", "ParseFloat", "FormatFloat", "AppendFloat"}, n.Name) {
				report(n, n.Name)
			}
		case *ast.BasicLit:
			if n.Kind == token.FLOAT && strings.Contains(n.Value, ".") {
				report(n, n.Value)
			}
		}
		return true
	})
	return problems
}

// unfinished finds the marks of work put off. The words are put together here
// so that this file does not find itself.
func unfinished() *regexp.Regexp {
	return regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)
}

// unfinishedComments looks into comments only: in code one of the words is the ISO 4217 code for "no currency", which tests ask for.
func unfinishedComments(s source) []string {
	var problems []string
	for _, group := range s.file.Comments {
		for _, comment := range group.List {
			if found := unfinished().FindString(comment.Text); found != "" {
				problems = append(problems, fmt.Sprintf("%s: %s; finish it or leave it out", s.at(comment), found))
			}
		}
	}
	return problems
}

func sleeps(s source) []string {
	var problems []string
	ast.Inspect(s.file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || !s.isTest() || selector.Sel.Name != "Sleep" {
			return true
		}
		if from, ok := selector.X.(*ast.Ident); ok && from.Name == "time" {
			problems = append(problems, s.at(selector)+": a test sleeps; wait for what it waits for, or use testing/synctest")
		}
		return true
	})
	return problems
}

func initFunctions(s source) []string {
	if s.isGenerated() {
		return nil
	}
	var problems []string
	for _, declaration := range s.file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil && function.Name.Name == "init" {
			problems = append(problems, s.at(function)+": func init runs unasked; call it from main")
		}
	}
	return problems
}

// missingDocs finds folders without a doc.go that says what they are.
func missingDocs(sources []source) []string {
	lines := map[string]int{} // folder → lines of the package comment in doc.go
	for _, s := range sources {
		folder := path.Dir(s.path)
		if path.Base(s.path) == "doc.go" && s.file.Doc != nil {
			lines[folder] = strings.Count(strings.TrimSpace(s.file.Doc.Text()), "\n") + 1
		} else if _, seen := lines[folder]; !seen {
			lines[folder] = 0
		}
	}
	var problems []string
	for folder, count := range lines {
		if count < docLinesMin {
			problems = append(problems, fmt.Sprintf("%s/doc.go: package comment of %d lines, at least %d", folder, count, docLinesMin))
		}
	}
	return problems
}

// textProblems finds what no file may have: what exists only on the machine of its author (home and work folders, hosts that no public
// name server knows), replace directives, with which go install refuses the module, and outside Go files the marks of work put off.
func textProblems(name, text string) []string {
	folders := regexp.MustCompile(`(^|[^\w.$})])/(wo` + `rk|ro` + `ot|ho` + `me/\w+|Us` + `ers/\w+)/`)
	hosts := regexp.MustCompile(`://[\w.-]+\.(inter` + `nal|l` + `an|co` + `rp|lo` + `cal)\b`)
	problems := slices.Concat(
		find(name, text, folders, "a path of one machine", "/wo"+"rk/", "/ro"+"ot/", "/ho"+"me/", "/Us"+"ers/"),
		find(name, text, hosts, "a host of one network", "://"),
	)
	switch {
	case path.Ext(name) == ".mod":
		problems = append(problems, find(name, text, regexp.MustCompile(`^\s*replace\b`), "install what is published instead", "replace")...)
		fallthrough
	case path.Ext(name) != ".go" && !strings.Contains(name, "testdata/") && path.Ext(name) != ".sum":
		problems = append(problems, find(name, text, unfinished(), "finish it or leave it out", "TO"+"DO", "FIX"+"ME", "X"+"XX")...)
	}
	return problems
}

// find reports each line that the pattern matches. Each match contains one of the words: they are looked for first, because the pattern
// takes a hundred times as long.
func find(name, text string, pattern *regexp.Regexp, why string, words ...string) []string {
	var problems []string
	for i, line := range strings.Split(text, "\n") {
		if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(line, word) }) {
			continue
		}
		if found := pattern.FindString(line); found != "" {
			problems = append(problems, fmt.Sprintf("%s:%d: %q: %s", name, i+1, found, why))
		}
	}
	return problems
}

// readSources gives every Go file of the tree that is not test data.
func readSources(t *testing.T) []source {
	t.Helper()
	sources, err := parsed()
	if err != nil || len(sources) < 100 {
		t.Fatalf("%d Go files, is this the root of the repository? %v", len(sources), err)
	}
	return sources
}

// parsed reads the sources once for all tests.
var parsed = sync.OnceValues(func() (sources []source, err error) {
	for _, name := range files() {
		if path.Ext(name) != ".go" || strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s, err := parse(name, string(text))
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
})

func parse(name, text string) (source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return source{path: name, text: text, set: set, file: file}, err
}

// files are all files of the repository but those that .gitignore names. They are found by reading folders: the test cache notices a new
// file then.
var files = sync.OnceValue(func() (names []string) {
	text, err := os.ReadFile(".gitignore")
	if err != nil {
		panic(err)
	}
	ignored := []string{"/.git"}
	for line := range strings.Lines(string(text)) {
		if rule := strings.TrimSpace(line); rule != "" && rule[0] != '#' {
			ignored = append(ignored, rule)
		}
	}
	err = filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch skip := slices.ContainsFunc(ignored, func(rule string) bool { return ignores(rule, name) }); {
		case err != nil || entry.IsDir() && !skip:
			return err
		case entry.IsDir():
			return filepath.SkipDir
		case !skip:
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return names
})

// ignores tells whether a rule of .gitignore, anchored in the root or not, names a file or folder.
func ignores(rule, name string) bool {
	pattern := strings.Trim(rule, "/")
	if rule[0] != '/' {
		parts := strings.Split(name, "/")
		name = strings.Join(parts[max(0, len(parts)-1-strings.Count(pattern, "/")):], "/")
	}
	matched, err := path.Match(pattern, name)
	return matched && err == nil
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
