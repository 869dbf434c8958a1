package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
)

// module is what the import path of every folder of ours begins with.
const module = "github.com/tasard/tasard"

// folder is one row of the layout: what a folder may import besides the
// standard library and the libraries that ownedLibraries grants it.
type folder struct {
	ours  []string // folders of ours
	never []string // packages of the standard library that would break what its doc.go promises
}

// layout is the table of folders. One that is not in it fails the test, so that
// a new folder is a decision and not an accident. The root has the name ".".
func layout() map[string]folder {
	return map[string]folder{
		".": {ours: []string{"engine", "wal", "actors", "actors/cluster", "actors/mail", "httpapi", "collectors", "collectors/source", "collectors/fetch",
			"collectors/simulated", "httpapi/contract", "httpapi/pages", "httpapi/pages/account", "httpapi/pages/docs", "httpapi/client", "httpapi/mcp",
			"httpapi/apitest"}}, // for the mock command alone: it is the harness on a port
		"engine":                     {never: []string{"log", "log/slog", "net", "net/http", "os", "os/exec", "unsafe"}},
		"wal":                        {never: []string{"net", "net/http"}},
		"actors":                     {ours: []string{"engine", "wal"}, never: []string{"net", "net/http"}},
		"actors/cluster":             {ours: []string{"engine", "actors", "wal"}, never: []string{"net/http"}},
		"actors/cluster/clustertest": {}, // of tests, here and in the root
		"actors/mail":                {ours: []string{"engine"}, never: []string{"net/http", "net/smtp", "os/exec"}},
		"httpapi":                    {ours: []string{"engine"}},
		"httpapi/apitest":            {ours: []string{"actors", "httpapi", "engine", "wal"}, never: []string{"testing"}},
		// A test package that others run: it knows the contract, and nothing of this node.
		"httpapi/apitest/conformance": {ours: []string{"httpapi/client"}},
		"httpapi/contract":            {},
		"httpapi/pages":               {ours: []string{"engine"}, never: []string{"os", "net"}},
		"httpapi/pages/account":       {ours: []string{"engine", "httpapi/pages"}, never: []string{"os", "net"}},
		"httpapi/pages/docs":          {ours: []string{"httpapi/pages"}, never: []string{"os", "net"}},
		"httpapi/client":              {never: []string{"os"}},
		"httpapi/mcp":                 {ours: []string{"httpapi/client"}},
		"collectors":                  {ours: []string{"engine", "collectors/source"}, never: []string{"net", "net/http", "os"}},

		"collectors/source":    {ours: []string{"engine", "collectors/workbook"}, never: []string{"net/http", "net"}},
		"collectors/fetch":     {ours: []string{"collectors/source"}},
		"collectors/workbook":  {never: []string{"net/http", "net", "os"}},
		"collectors/simulated": {ours: []string{"engine", "collectors/source"}},
		"bench":                {ours: []string{"engine", "httpapi/apitest", "httpapi/client"}},
		"bench/faults":         {}, // tests alone
	}
}

// ownedLibraries names, for each module from outside, the folders that may
// import it. A library that is not in it may be imported by nobody. The path
// covers the packages below it.
func ownedLibraries() map[string][]string {
	return map[string][]string{
		"github.com/cockroachdb/apd/v3":           {"engine"},
		"github.com/tidwall/wal":                  {"wal"},
		"golang.org/x/sys":                        {"wal", "bench"},
		"github.com/HdrHistogram/hdrhistogram-go": {"bench"},
		"github.com/jackc/pgx/v5":                 {"bench"}, // the yardstick with PostgreSQL
		"github.com/asynkron/protoactor-go":       {"actors"},
		"github.com/planetscale/vtprotobuf":       {"actors"},
		"google.golang.org/protobuf":              {"actors"},
		"github.com/valyala/fasthttp":             {"httpapi", "httpapi/apitest", "bench"}, // bench: the bare server it compares with
		"github.com/fasthttp/router":              {"httpapi"},
		"github.com/klauspost/compress":           {"httpapi", "wal", "actors"},
		"github.com/PuerkitoBio/goquery":          {"collectors/source"},
		"github.com/temoto/robotstxt":             {"collectors/fetch"},
		"golang.org/x/net":                        {"collectors/source", "collectors/fetch"}, // charsets; sites and their names
		"golang.org/x/text":                       {"collectors/source"},
		"github.com/richardlehane/mscfb":          {"collectors/workbook"},
		"github.com/prometheus/client_golang":     {"."},
		"github.com/wneessen/go-mail":             {"actors/mail"},
		"github.com/spf13/cobra":                  {"."},
		"github.com/coreos/go-systemd/v22":        {"."}, // how a service manager is told
		"github.com/nats-io/nats-server/v2":       {"actors/cluster"},
		"github.com/nats-io/nats.go":              {"actors/cluster"},
		"go.uber.org/automaxprocs":                {"."},
		"github.com/spf13/pflag":                  {"."},
		"github.com/BurntSushi/toml":              {"."},
		"github.com/modelcontextprotocol/go-sdk":  {"httpapi/mcp"},
		"github.com/google/jsonschema-go":         {"httpapi/mcp"}, // the SDK's schemas of parameters
	}
}

// testLibraries may be imported by every test, and by nothing else.
func testLibraries() []string {
	return []string{"pgregory.net/rapid", "go.uber.org/goleak"}
}

// ownedTestLibraries is ownedLibraries for tests: the other end of what the
// folder speaks to. The program may not import them.
func ownedTestLibraries() map[string][]string {
	return map[string][]string{
		"github.com/emersion/go-smtp":            {"actors/mail", "."},
		"github.com/emersion/go-sasl":            {"actors/mail", "."},
		"github.com/modelcontextprotocol/go-sdk": {"."}, // a client for tasard mcp
		"github.com/anishathalye/porcupine":      {"actors", "bench/faults"},
		"github.com/orcaman/concurrent-map":      {"actors"},                 // a node starts faster in tests
		"github.com/hanwen/go-fuse/v2":           {"bench/faults"},           // a file system that loses what was not synced
		"golang.org/x/sys":                       {"actors", "bench/faults"}, // what a start costs in CPU time; mounts
		"golang.org/x/net":                       {"httpapi/pages"},          // read pages
		"github.com/xuri/excelize/v2":            {"collectors/workbook"},    // writes the fixtures, and reads them as a second opinion
		// The OpenAPI document: read as it was written, and an opinion on answers that is not ours.
		"go.yaml.in/yaml/v3":                       {"httpapi/contract", "."}, // packaging: alerts
		"github.com/santhosh-tekuri/jsonschema/v6": {"httpapi/contract", "httpapi"},
	}
}

// testRule says what is held against the imports of test files.
const testRule = "test files may import every folder of ours, the libraries of their own folder, " +
	"those that ownedTestLibraries grants it, pgregory.net/rapid and go.uber.org/goleak"

// topLevel lists what may lie in the root of the repository besides Go files of
// package main.
func topLevel() []string {
	return []string{
		"engine", "actors", "wal", "httpapi", "collectors", "bench", "packaging",
		"go.mod", "go.sum", "Makefile", "README.md", "LICENSE", "CHANGELOG.md", "Dockerfile",
		".golangci.yml", ".ci", ".github", ".gitignore", ".dockerignore",
	}
}

// goPackage is what is read of the output of go list.
type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestLayout_Imports(t *testing.T) {
	t.Log(testRule)
	packages := listPackages(t)
	if len(packages) == 0 {
		t.Fatal("go list names no package; is the test running in the root of the repository?")
	}
	for _, problem := range importProblems(packages) {
		t.Error(problem)
	}
}

func TestLayout_TopLevel(t *testing.T) {
	for _, problem := range topLevelProblems(repositoryFiles(t)) {
		t.Error(problem)
	}
}

func TestLayout_ControlImports(t *testing.T) {
	tests := []struct {
		name, want string
		pkg        goPackage
	}{
		{"ours", "engine imports wal", goPackage{ImportPath: module + "/engine", Imports: []string{module + "/wal"}}},
		{"the bench in the root", ". imports bench", goPackage{ImportPath: module, Imports: []string{module + "/bench"}}},
		{"a library of another folder", "httpapi imports github.com/asynkron/protoactor-go/actor", goPackage{ImportPath: module + "/httpapi", Imports: []string{"github.com/asynkron/protoactor-go/actor"}}},
		{"a library of nobody", "wal imports example.com/x", goPackage{ImportPath: module + "/wal", Imports: []string{"example.com/x"}}},
		{"a test library in the program", "wal imports pgregory.net/rapid", goPackage{ImportPath: module + "/wal", Imports: []string{"pgregory.net/rapid"}}},
		{"a test with a library of another folder", "engine imports github.com/tidwall/wal in tests", goPackage{ImportPath: module + "/engine", XTestImports: []string{"github.com/tidwall/wal"}}},
		{"a library for tests in the program", "actors/mail imports github.com/emersion/go-smtp", goPackage{ImportPath: module + "/actors/mail", Imports: []string{"github.com/emersion/go-smtp"}}},
		{"a test library of another folder", "httpapi imports github.com/emersion/go-smtp in tests", goPackage{ImportPath: module + "/httpapi", TestImports: []string{"github.com/emersion/go-smtp"}}},
		{"a name that only begins alike", "wal imports github.com/tidwall/walrus", goPackage{ImportPath: module + "/wal", Imports: []string{"github.com/tidwall/walrus"}}},
		{"a file in the engine", "engine imports os", goPackage{ImportPath: module + "/engine", Imports: []string{"os"}}},
		{"testing in the harness", "httpapi/apitest imports testing", goPackage{ImportPath: module + "/httpapi/apitest", Imports: []string{"testing"}}},
		{"a folder without a row", "internal/x has no row", goPackage{ImportPath: module + "/internal/x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mustReport(t, importProblems([]goPackage{tt.pkg}), tt.want)
		})
	}
	clean := goPackage{
		ImportPath:  module + "/actors",
		Imports:     []string{"context", module + "/engine", module + "/wal", "github.com/asynkron/protoactor-go/actor"},
		TestImports: []string{"testing", "pgregory.net/rapid", module + "/httpapi"},
	}
	if got := importProblems([]goPackage{clean}); len(got) > 0 {
		t.Errorf("a clean package is reported: %q", got)
	}
}

func TestLayout_ControlTopLevel(t *testing.T) {
	files := []string{"main.go", "util/strings.go", "notes.txt", "engine/doc.go", ".ci/run", "packaging/x.go"}
	problems := topLevelProblems(files)
	mustReport(t, problems, "util")
	mustReport(t, problems, "notes.txt")
	mustReport(t, problems, "packaging/x.go")
	if len(problems) != 3 {
		t.Errorf("got %q, want 3 problems", problems)
	}
}

// mustReport fails when no problem contains want: the check is blind.
func mustReport(t *testing.T, problems []string, want string) {
	t.Helper()
	if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
		t.Errorf("planted %q is not reported; reported: %q", want, problems)
	}
}

// importProblems holds the packages against the layout.
func importProblems(packages []goPackage) []string {
	var problems []string
	for _, p := range packages {
		name := folderOf(p.ImportPath)
		row, ok := layout()[name]
		if !ok {
			problems = append(problems, fmt.Sprintf("folder %s has no row in the layout", name))
			continue
		}
		for _, imported := range p.Imports {
			if why := refuse(name, row, imported); why != "" {
				problems = append(problems, fmt.Sprintf("%s imports %s: %s", name, relative(imported), why))
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if why := refuseInTest(name, imported); why != "" {
				problems = append(problems, fmt.Sprintf("%s imports %s in tests: %s", name, relative(imported), why))
			}
		}
	}
	return problems
}

// refuse says why a folder may not import a package, or "".
func refuse(name string, row folder, imported string) string {
	switch {
	case isOurs(imported):
		if !slices.Contains(row.ours, folderOf(imported)) {
			return fmt.Sprintf("of ours it may import %q", row.ours)
		}
	case isStandard(imported):
		if slices.Contains(row.never, imported) {
			return "its row forbids this package"
		}
	default:
		return refuseLibrary(name, imported, ownedLibraries())
	}
	return ""
}

// refuseInTest is refuse for test files, by testRule.
func refuseInTest(name, imported string) string {
	if isOurs(imported) || isStandard(imported) {
		return ""
	}
	if slices.ContainsFunc(testLibraries(), func(library string) bool { return within(imported, library) }) {
		return ""
	}
	if why := refuseLibrary(name, imported, ownedTestLibraries()); why == "" {
		return ""
	}
	return refuseLibrary(name, imported, ownedLibraries())
}

// refuseLibrary says why a folder may not import a package from outside, or "".
func refuseLibrary(name, imported string, owned map[string][]string) string {
	for library, owners := range owned {
		if !within(imported, library) {
			continue
		}
		if slices.Contains(owners, name) {
			return ""
		}
		return fmt.Sprintf("it belongs to %q", owners)
	}
	return "no folder owns this library"
}

// topLevelProblems holds the names of files, with slashes, against topLevel.
func topLevelProblems(files []string) []string {
	unknown := map[string]bool{}
	for _, file := range files {
		top, _, nested := strings.Cut(file, "/")
		switch {
		case top == "packaging" && path.Ext(file) == ".go":
			unknown[file] = true
		case !nested && path.Ext(file) == ".go", slices.Contains(topLevel(), top):
		default:
			unknown[top] = true
		}
	}
	var problems []string
	for name := range unknown {
		problems = append(problems, name+" has no place at the top of the repository (topLevel)")
	}
	sort.Strings(problems)
	return problems
}

func isOurs(imported string) bool { return within(imported, module) }

// isStandard tells the standard library by the first element of the path, which
// has no dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// within reports whether the package is root or lies below it.
func within(imported, root string) bool {
	return imported == root || strings.HasPrefix(imported, root+"/")
}

// folderOf is the folder of a package of ours; "." is the root.
func folderOf(imported string) string {
	if imported == module {
		return "."
	}
	return strings.TrimPrefix(imported, module+"/")
}

// relative shortens a path of ours to its folder.
func relative(imported string) string {
	if isOurs(imported) {
		return folderOf(imported)
	}
	return imported
}

// listPackages asks the go command for all packages of the tree, with the
// files of the fault tests.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	out := command(t, "go", "list", "-tags", "faults", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("read the output of go list: %v", err)
		}
		packages = append(packages, p)
	}
}

// repositoryFiles lists what is or could be committed: everything that
// .gitignore does not name. Without git (an unpacked archive) it lists
// everything but .git and .tools.
func repositoryFiles(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat(".git"); err == nil {
		out := command(t, "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
		files := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
		return slices.DeleteFunc(files, func(name string) bool {
			_, err := os.Stat(filepath.FromSlash(name))
			return err != nil // deleted, not yet committed
		})
	}
	var files []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (name == ".git" || name == ".tools") {
			return filepath.SkipDir
		}
		if !entry.IsDir() {
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk the repository: %v", err)
	}
	return files
}

// command runs a program in the root of the repository and returns its output.
func command(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run %s %s: %v\n%s", name, strings.Join(args, " "), err, problem.String())
	}
	return out
}
