package tidy_test

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is what the import path of every folder of ours begins with.
const module = "github.com/tasard/tasard"

// folder is one row of the layout: what a folder may import besides the standard library and the libraries that ownedLibraries grants it.
type folder struct {
	ours  []string // folders of ours
	never []string // packages of the standard library that would break what its doc.go promises
}

// layout is the table of folders. One that is not in it fails the test: a new folder is a decision, not an accident. "." is the root.
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
		"httpapi":                    {ours: []string{"engine", "httpapi/conn", "httpapi/internal/params", "httpapi/internal/fields"}},
		// How a question is written, and values of header fields.
		"httpapi/internal/params": {ours: []string{"engine"}, never: []string{"net/http", "os"}},
		"httpapi/internal/fields": {never: []string{"net/http", "os"}},
		// It knows connections, and nothing of what is asked on them.
		"httpapi/conn": {ours: []string{"httpapi/internal/fields"}},

		"httpapi/apitest": {ours: []string{"actors", "httpapi", "engine", "wal"}, never: []string{"testing"}},
		// A test package that others run: it knows the contract, and nothing of this node.
		"httpapi/apitest/conformance": {ours: []string{"httpapi/client"}},
		"httpapi/contract":            {ours: []string{"httpapi/internal/fields"}},
		"httpapi/pages":               {ours: []string{"engine", "httpapi/internal/fields"}, never: []string{"os", "net"}},
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
		"bench/faults":         {}, // only tests
		"packaging":            {}, // only tests
		"packaging/tidy":       {}, // only tests
	}
}

// ownedLibraries names the folders that may import a module from outside, and the packages below it. One that is not listed is for none.
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
		"github.com/valyala/fasthttp":             {"httpapi", "httpapi/apitest", "httpapi/conn", "bench"}, // bench: the bare server it compares with
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

// ownedTestLibraries is ownedLibraries for tests: the other end of what the folder speaks to. The program may not import them.
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
		"go.yaml.in/yaml/v3":                       {"httpapi/contract", "packaging"}, // packaging: alerts
		"github.com/santhosh-tekuri/jsonschema/v6": {"httpapi/contract", "httpapi"},
	}
}

// topLevel lists what may lie in the root of the repository besides Go files of package main.
func topLevel() []string {
	return []string{
		"engine", "actors", "wal", "httpapi", "collectors", "bench", "packaging",
		"go.mod", "go.sum", "Makefile", "README.md", "LICENSE", "CHANGELOG.md", "Dockerfile",
		".golangci.yml", ".ci", ".github", ".gitignore", ".dockerignore",
	}
}

func TestLayout(t *testing.T) {
	for _, problem := range slices.Concat(importProblems(readSources(t)), topLevelProblems(files())) {
		t.Error(problem)
	}
}

func TestLayout_Control(t *testing.T) {
	for _, tt := range []struct{ file, imported, want string }{
		{"engine/a.go", module + "/wal", "engine imports wal"},
		{"main.go", module + "/bench", ". imports bench"},
		{"httpapi/a.go", "github.com/asynkron/protoactor-go/actor", "httpapi imports github.com/asynkron/protoactor-go/actor"},
		{"wal/a.go", "example.com/x", "wal imports example.com/x: no folder owns this library"},
		{"wal/a.go", "pgregory.net/rapid", "wal imports pgregory.net/rapid"},
		{"engine/a_test.go", "github.com/tidwall/wal", "engine imports github.com/tidwall/wal in tests"},
		{"actors/mail/a.go", "github.com/emersion/go-smtp", "actors/mail imports github.com/emersion/go-smtp"},
		{"httpapi/a_test.go", "github.com/emersion/go-smtp", "httpapi imports github.com/emersion/go-smtp in tests"},
		{"actors/a.go", "github.com/modelcontextprotocol/go-sdk/mcp", "actors imports github.com/modelcontextprotocol/go-sdk/mcp"},
		{"actors/a.go", module + "/httpapi/mcp", "actors imports httpapi/mcp"},
		{"wal/a.go", "github.com/tidwall/walrus", "wal imports github.com/tidwall/walrus"}, // a name that only begins alike
		{"engine/a.go", "os", "engine imports os: its row forbids this package"},
		{"httpapi/apitest/a.go", "testing", "httpapi/apitest imports testing"},
		{"internal/x/a.go", "os", "internal/x has no row"},
		{"actors/a.go", module + "/engine", ""},
		{"actors/a.go", "github.com/asynkron/protoactor-go/actor", ""},
		{"actors/a_test.go", module + "/httpapi", ""},
		{"actors/a_test.go", "pgregory.net/rapid", ""},
	} {
		expect(t, tt.file+" with "+tt.imported, importProblems([]source{mustParse(t, tt.file, "package a\n\nimport "+strconv.Quote(tt.imported)+"\n")}), tt.want)
	}
	for file, want := range map[string]string{
		"util/strings.go": "util has no place", "notes.txt": "notes.txt has no place", "packaging/x.go": "packaging/x.go has no place",
		"packaging/doc.go": "", "packaging/tidy/tidy_test.go": "", "main.go": "", "engine/doc.go": "", ".ci/run": "",
	} {
		expect(t, file, topLevelProblems([]string{file}), want)
	}
}

// importProblems holds the sources against the layout, those of the fault tests too. Test files may import every folder of ours, the
// libraries of their own folder, those that ownedTestLibraries grants it, and testLibraries.
func importProblems(sources []source) []string {
	var problems []string
	for _, s := range sources {
		name := path.Dir(s.path)
		if name != "." && name[0] == '.' {
			continue
		}
		row, ok := layout()[name]
		if !ok {
			problems = append(problems, fmt.Sprintf("folder %s has no row in the layout", name))
			continue
		}
		for _, spec := range s.file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			what, why := "", refuse(name, row, imported)
			if s.isTest() {
				what, why = " in tests", refuseInTest(name, imported)
			}
			if err != nil || why != "" {
				problems = append(problems, fmt.Sprintf("%s imports %s%s: %s", name, strings.TrimPrefix(imported, module+"/"), what, why))
			}
		}
	}
	return problems
}

// refuse says why a folder may not import a package, or "".
func refuse(name string, row folder, imported string) string {
	switch {
	case within(imported, module):
		if !slices.Contains(row.ours, strings.TrimPrefix(imported, module+"/")) {
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

// refuseInTest is refuse for test files.
func refuseInTest(name, imported string) string {
	if within(imported, module) || isStandard(imported) ||
		slices.ContainsFunc(testLibraries(), func(library string) bool { return within(imported, library) }) ||
		refuseLibrary(name, imported, ownedTestLibraries()) == "" {
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

// topLevelProblems holds the names of files against topLevel; packaging holds no code but tests.
func topLevelProblems(files []string) []string {
	var problems []string
	for _, file := range files {
		top, _, nested := strings.Cut(file, "/")
		isGo, packaged := path.Ext(file) == ".go", top == "packaging" && path.Base(file) != "doc.go" && !strings.HasSuffix(file, "_test.go")
		switch {
		case isGo && packaged:
			problems = append(problems, file+" has no place: packaging holds no code but tests")
		case !(isGo && !nested) && !slices.Contains(topLevel(), top):
			problems = append(problems, top+" has no place at the top of the repository (topLevel)")
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// isStandard tells the standard library by the first element of the path, which has no dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// within reports whether the package is root or lies below it.
func within(imported, root string) bool {
	return imported == root || strings.HasPrefix(imported, root+"/")
}
