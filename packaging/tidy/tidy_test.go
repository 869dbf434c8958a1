package tidy_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// goroutineFiles lists the files that may start goroutines, each with the
// owner that waits for them. Tests are exempt: goleak checks them.
func goroutineFiles() map[string]string {
	return map[string]string{
		"actors/cluster/cluster.go":         "Cluster.Close",
		"actors/cluster/transport.go":       "transport.write",
		"actors/mail/smtp.go":               "attempt: stops the call that closes its connection",
		"actors/mail/mailer.go":             "Mailer.Close, which waits for the worker",
		"actors/internal/accounts/shard.go": "Accounts.Stop, in System.Close",
		"actors/internal/accounts/clock.go": "writeTimer.stop, in Accounts.ReturnLeases, in System.Close",
		"actors/mailbox/dispatcher.go":      "mailbox.System.Close, at the end of System.Close",
		"actors/system.go":                  "System.Close: waits for the replay",
		"actors/internal/commitlog/log.go":  "Log.Finish, Stop and Close, in System.Close",
		"bench/server.go":                   "runBare: closes the listener when its context ends",
		"bench/process.go":                  "process.stop or kill: waits for the end of the process",
		"bench/load.go":                     "generator.drive: waits for every client",
		"collectors/collector.go":           "Collector.Run: waits for every source",
		"collectors/fetch/client.go":        "closes a connection at the end of its Fetch",
		"collectors/simulated/site.go":      "Site.Close: waits for the accept loops and for every connection",
		"cmd/sources/check.go":              "checkAll: waits for every check",
		"httpapi/apitest/acceptor.go":       "acceptor.close: waits for the accept loop and for every connection",
		"cmd/internal/process/input.go":     "the context of the command: only one that reads stdin may outlive it",
		"cmd/run.go":                        "none runs on: it gives the second signal its usual effect, then ends",
		"node/collect.go":                   "collection.stop: waits for the collector",
		"node/tls.go":                       "redirectServer.stop: the server's accept loop",
		"node/server.go":                    "httpServer.stop: the server's accept loop",
		"node/node.go":                      "Node.Close: waits for what goes on beside the callers",
		"httpapi/admin/server.go":           "Server.Stop: the server's accept loop",
		"httpapi/admin/client.go":           "none runs on: BackupStream.Close stops its timer",
		"cmd/internal/terminal/logging.go":  "LogQueue.Close: waits, but only a second if nothing reads the log",
		"cmd/mock.go":                       "none runs on: it closes the server of the controls",
		"cmd/systemd.go":                    "notifier.stop, in serve",
		"cmd/serve.go":                      "takeInBeside: waits for the import",
	}
}

func TestTidy(t *testing.T) {
	started := map[string]bool{}
	for _, s := range readSources(t) {
		starts := goroutines(s)
		started[s.path] = len(starts) > 0
		if goroutineFiles()[s.path] == "" && !s.isTest() {
			for _, problem := range starts {
				t.Error(problem)
			}
		}
		if layout[path.Dir(s.path)].exact && !s.isTest() {
			for _, problem := range binaryFloats(s) {
				t.Error(problem)
			}
		}
	}
	for name := range goroutineFiles() {
		if !started[name] {
			t.Errorf("%s is in goroutineFiles but starts no goroutine", name)
		}
	}
	for _, name := range files() {
		if text := readText(t, name); utf8.ValidString(text) { // else a sample in another encoding, or not text
			for _, problem := range textProblems(name, text) {
				t.Error(problem)
			}
		}
	}
}

// goroutines finds go statements, the Go method of wait groups, and AfterFunc of timers and contexts.
func goroutines(s source) (problems []string) {
	ast.Inspect(s.file, func(node ast.Node) bool {
		_, starts := node.(*ast.GoStmt)
		if call, ok := node.(*ast.CallExpr); ok && len(call.Args) > 0 {
			selector, ok := call.Fun.(*ast.SelectorExpr)
			starts = ok && (selector.Sel.Name == "Go" || selector.Sel.Name == "AfterFunc")
		}
		if starts {
			problems = append(problems, fmt.Sprintf("%s:%d: starts a goroutine; name its owner in goroutineFiles or do without", s.path, s.lineOf(node.Pos())))
		}
		return true
	})
	return problems
}

// binaryFloats finds float types, float literals, and functions of strconv that make floats.
func binaryFloats(s source) (problems []string) {
	names := regexp.MustCompile(`^(float32|float64|complex64|complex128|ParseFloat|FormatFloat|AppendFloat)$`)
	ast.Inspect(s.file, func(node ast.Node) bool {
		found := ""
		if name, ok := node.(*ast.Ident); ok {
			found = names.FindString(name.Name)
		}
		if number, ok := node.(*ast.BasicLit); ok && number.Kind == token.FLOAT && strings.Contains(number.Value, ".") {
			found = number.Value
		}
		if found != "" {
			problems = append(problems, fmt.Sprintf("%s:%d: %s in a package that holds exact money", s.path, s.lineOf(node.Pos()), found))
		}
		return true
	})
	return problems
}

// textProblems finds texts that no file may contain: paths and hosts of one machine or network, replace directives,
// with which go install refuses the module, and marks of unfinished work (in Go files only in comments: one of them
// is also the ISO 4217 code for "no currency"). The patterns are concatenated so that this file does not find itself.
func textProblems(name, text string) (problems []string) {
	find := func(why, words, pattern string) {
		for i, line := range strings.Split(text, "\n") {
			// Each match contains one of the words, and looking for them is a hundred times as fast.
			if !slices.ContainsFunc(strings.Fields(words), func(word string) bool { return strings.Contains(line, word) }) {
				continue
			}
			if found := regexp.MustCompile(pattern).FindString(line); found != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %q: %s", name, i+1, found, why))
			}
		}
	}
	find("a path of one machine", "/wo"+"rk/ /ro"+"ot/ /ho"+"me/ /Us"+"ers/", `(^|[^\w.$})])/(wo`+`rk|ro`+`ot|ho`+`me/\w+|Us`+`ers/\w+)/`)
	find("a host of one network", "://", `://[\w.-]+\.(inter`+`nal|l`+`an|co`+`rp|lo`+`cal)\b`)
	const marks, pattern = "TO" + "DO FIX" + "ME X" + "XX", `\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`
	switch path.Ext(name) {
	case ".go":
		find("finish it or leave it out", marks, `(//|/\*).*`+pattern)
	case ".mod":
		find("install what is published instead", "replace", `^\s*replace\b`)
	}
	if path.Ext(name) != ".go" && path.Ext(name) != ".sum" && !strings.Contains(name, "testdata/") {
		find("finish it or leave it out", marks, pattern)
	}
	return problems
}

// root is the repository. Tests open files by names that begin with it: the test cache does not notice a change of the
// working directory in TestMain, and would look for the files elsewhere.
const root = "../../"

// files returns all files of the repository except those of .gitignore, which are repeated here as folders and file
// extensions. It reads the folders, so that the test cache notices a new file.
var files = sync.OnceValue(func() (names []string) {
	folders := []string{".git", ".tools", "dist", "data", ".demo", "testdata/rapid"}
	ignored := []string{"tasard", "bench/bench", "cover.html"}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains(folders, name) || strings.HasSuffix(name, "/testdata/rapid")):
			return fs.SkipDir
		case !entry.IsDir() && name != ".git" && !slices.Contains(ignored, name) && !slices.Contains([]string{".test", ".out", ".prof"}, path.Ext(name)):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return names
})

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(root + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// source is one Go file of the tree.
type source struct {
	path string // with slashes, relative to the root
	set  *token.FileSet
	file *ast.File
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) lineOf(p token.Pos) int { return s.set.Position(p).Line }

func (s source) imports() (paths []string) {
	for _, spec := range s.file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(err)
		}
		paths = append(paths, imported)
	}
	return paths
}

// readSources returns every Go file of the repository outside test data.
func readSources(t *testing.T) []source {
	t.Helper()
	if len(sources()) < 100 {
		t.Fatalf("%d Go files, is this the root of the repository?", len(sources()))
	}
	return sources()
}

// sources are read once for all tests.
var sources = sync.OnceValue(func() (all []source) {
	for _, name := range files() {
		if path.Ext(name) != ".go" || strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(root + name)
		if err != nil {
			panic(err)
		}
		s, err := parse(name, text)
		if err != nil {
			panic(err)
		}
		all = append(all, s)
	}
	return all
})

func parse(name string, text []byte) (source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return source{path: name, set: set, file: file}, err
}

// TestControls feeds each check a text that it must report.
func TestControls(t *testing.T) {
	for want, found := range map[string][]string{
		"imports":                 layoutProblems([]source{mustParse(t, "engine/doc.go", "package a\nimport \"os\"\n")}),
		"has no place at the top": placeProblems([]string{"util/strings.go"}),
		"starts a goroutine":      goroutines(mustParse(t, "engine/a.go", "package a\nfunc g() { go f() }\n")),
		"float64":                 binaryFloats(mustParse(t, "engine/a.go", "package a\nvar x float64\n")),
		"a path of one machine":   textProblems("README.md", "see /wo"+"rk/main/x"),
		"finish it":               textProblems("engine/a.go", "f() // TO"+"DO: later"),
		"install what":            textProblems("go.mod", "replace a => ../a\n"),
		"strangers":               passageProblems("engine/a.go", goPassages(mustParse(t, "engine/a.go", "package a\n\n// f is for strangers.\nfunc f() {}\n"))),
		"anew":                    passageProblems("docs/a.md", textPassages("docs/a.md", "It is read\nanew.\n")),
		"columns":                 columnProblems("engine/a.go", "// "+strings.Repeat("x", commentColumnsMax)),
	} {
		if !strings.Contains(strings.Join(found, " "), want) {
			t.Errorf("want a problem with %q, found %q", want, found)
		}
	}
}

// mustParse parses a file that exists only in the test.
func mustParse(t *testing.T, path, text string) source {
	t.Helper()
	s, err := parse(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
