package tidy_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// row holds the rules of one package. Our packages are named by their path below the root, without those below them;
// libraries without "github.com/", with those below them. The standard library is allowed except never.
type row struct {
	may        string // what it may import, in its tests too
	tests      string // libraries of its tests, in addition to everyTest; tests may import all of ours
	never      string // packages of the standard library that would break the promises of its doc.go
	exact      bool   // it holds money: no float may enter it
	standalone bool   // its tests import nothing but it: go mod tidy of its users would download what they need
}

// layout is the table of packages; "." is the root. A package without a row fails the test. A library has one owner:
// only its row names it.
var layout = map[string]row{
	".": {may: "cmd"},
	"cmd": {may: "cmd/... httpapi/apitest httpapi/client httpapi/mcp collectors/simulated " + commandImports +
		"coreos/go-systemd/v22 go.uber.org/automaxprocs KimMachineGun/automemlimit golang.org/x/sys",
		tests: "modelcontextprotocol/go-sdk prometheus/client_golang emersion/go-smtp emersion/go-sasl anishathalye/porcupine golang.org/x/sys " +
			"hanwen/go-fuse/v2"}, // a file system that loses what was not synced
	"cmd/...": {may: "cmd/... actors/dump actors/mail collectors/archive collectors/suggest " + commandImports},
	"node": {may: "node/acme node/core node/metrics engine engine/account wal actors actors/cluster actors/mail httpapi httpapi/admin httpapi/conn " +
		"collectors collectors/archive collectors/source collectors/fetch golang.org/x/net"},
	"node/acme":       {may: "golang.org/x/crypto"},
	"node/core":       {may: "engine/account engine wal actors httpapi httpapi/admin httpapi/contract httpapi/data httpapi/pages httpapi/pages/account httpapi/pages/docs"},
	"node/metrics":    {may: "engine engine/account wal actors actors/cluster actors/mail httpapi collectors collectors/archive prometheus/client_golang"},
	"httpapi/admin":   {may: "engine engine/account", exact: true},
	"engine":          {may: "engine/jsonfile cockroachdb/apd/v3", never: "log log/slog net net/http os os/exec unsafe", exact: true},
	"engine/jsonfile": {never: "log log/slog net net/http os os/exec unsafe", exact: true},
	"engine/account": {may: "engine", // who asks, and how much
		never: "log log/slog net net/http os os/exec unsafe", exact: true},
	"engine/account/secrettest": {}, // of tests
	"wal":                       {may: "tidwall/wal klauspost/compress prometheus/client_golang golang.org/x/sys", never: "net net/http"},
	"actors": {may: "engine engine/account wal actors/internal/accounts actors/internal/commitlog actors/internal/record actors/mailbox",
		tests: "anishathalye/porcupine golang.org/x/sys " + // what a start costs in CPU time
			"orcaman/concurrent-map", // a node starts faster in tests
		never: "net net/http", exact: true},
	"actors/mailbox": {may: "engine asynkron/protoactor-go orcaman/concurrent-map", never: "net net/http os", exact: true},
	"actors/dump":    {may: "engine engine/account actors/internal/record", never: "net net/http os", exact: true},
	"actors/internal/accounts": {may: "engine engine/account actors/internal/commitlog actors/internal/record actors/mailbox",
		never: "net net/http os", exact: true},
	"actors/internal/commitlog": {may: "engine engine/account wal actors/internal/record actors/mailbox", never: "net net/http os", exact: true},
	"actors/internal/record":    {may: "engine engine/account google.golang.org/protobuf", never: "net net/http os unsafe", exact: true},
	"actors/cluster":            {may: "engine engine/account actors wal go.etcd.io/raft/v3 google.golang.org/protobuf", never: "net/http"},
	"actors/mail":               {may: "engine engine/account wneessen/go-mail", tests: "emersion/go-smtp emersion/go-sasl", never: "net/http net/smtp os/exec"},
	"httpapi": {may: "engine engine/account httpapi/conn httpapi/internal/encode httpapi/internal/params httpapi/internal/fields httpapi/internal/rendered httpapi/internal/counters valyala/fasthttp prometheus/client_golang",
		tests: "santhosh-tekuri/jsonschema/v6", exact: true},
	"httpapi/conn":              {may: "httpapi/internal/fields valyala/fasthttp", exact: true}, // it knows nothing of what is asked
	"httpapi/internal/counters": {may: "engine httpapi/conn prometheus/client_golang valyala/fasthttp", never: "os"},
	"httpapi/internal/params":   {may: "engine", never: "net/http os", exact: true},                                        // how a question is written
	"httpapi/internal/encode":   {may: "engine", never: "net/http os", exact: true},                                        // JSON
	"httpapi/internal/rendered": {may: "engine httpapi/internal/encode httpapi/internal/fields", never: "os", exact: true}, // encoded bodies
	"httpapi/internal/fields":   {never: "net/http os", exact: true},                                                       // values of header fields
	"httpapi/apitest":           {may: "node/core actors httpapi httpapi/admin httpapi/internal/encode engine engine/account wal valyala/fasthttp", never: "testing", exact: true},
	"httpapi/client":            {never: "os", exact: true, standalone: true},
	"httpapi/data":              {may: "engine httpapi/internal/encode httpapi/internal/rendered", never: "os", exact: true},   // rates as files
	"httpapi/contract":          {may: "httpapi/internal/rendered", tests: "go.yaml.in/yaml/v3 santhosh-tekuri/jsonschema/v6"}, // an opinion on answers that is not ours
	"httpapi/mcp":               {may: "httpapi/client modelcontextprotocol/go-sdk", exact: true},
	"httpapi/pages":             {may: "engine engine/account httpapi/internal/encode httpapi/internal/fields httpapi/internal/rendered golang.org/x/image maragu.dev/gomponents", tests: "golang.org/x/net", never: "os net", exact: true},
	"httpapi/pages/account":     {may: "engine engine/account httpapi/internal/fields httpapi/pages maragu.dev/gomponents", never: "os net"},
	"httpapi/pages/docs":        {may: "httpapi/pages maragu.dev/gomponents", never: "os net"},
	"collectors":                {may: "engine collectors/archive collectors/source collectors/suggest tidwall/gjson", never: "net net/http os", exact: true},
	"collectors/source":         {may: "engine engine/jsonfile collectors/markup collectors/values collectors/workbook golang.org/x/net golang.org/x/text santhosh-tekuri/jsonschema/v6 tidwall/gjson", never: "net net/http"},
	"collectors/markup":         {may: "collectors/values PuerkitoBio/goquery golang.org/x/net", never: "net net/http os", exact: true},
	"collectors/values":         {may: "engine golang.org/x/text", never: "net net/http os", exact: true},
	"collectors/suggest":        {may: "engine collectors/markup collectors/source collectors/values golang.org/x/net tidwall/gjson", never: "net net/http os", exact: true},
	"collectors/archive":        {may: "engine collectors/source klauspost/compress", never: "net net/http", exact: true},
	"collectors/fetch":          {may: "collectors/source golang.org/x/net"},
	"collectors/workbook":       {may: "xuri/excelize/v2", never: "net net/http os"},
	"collectors/simulated":      {may: "engine collectors/source"},
	"bench": {may: "engine httpapi/apitest collectors/simulated golang.org/x/sys HdrHistogram/hdrhistogram-go " +
		"valyala/fasthttp"}, // the bare server
	"packaging":      {tests: "go.yaml.in/yaml/v3 prometheus/client_golang"},
	"packaging/tidy": {},
}

// commandImports are what commands work on directly.
const commandImports = "node httpapi/admin engine engine/account wal actors collectors collectors/source spf13/cobra spf13/pflag BurntSushi/toml "

const (
	module    = "github.com/tasard/tasard/"
	everyTest = "pgregory.net/rapid go.uber.org/goleak"
	// Templates look methods up by name at run time, so the linker keeps every exported method of every type: 7 MB. The
	// encodings of the whole world are 0.6 MB, and its time zones 0.4 MB.
	neverAtAll  = "text/template html/template golang.org/x/net/html/charset"
	docLinesMin = 5 // more than the name of the package
	docLinesMax = 60
)

func TestLayout(t *testing.T) {
	for _, problem := range slices.Concat(layoutProblems(readSources(t)), placeProblems(files())) {
		t.Error(problem)
	}
	guide := readText(t, "docs/contributing.md")
	for folder := range layout {
		if folder == "cmd/..." {
			continue
		}
		below, _, _ := strings.Cut(folder, "/internal/")
		named := strings.Contains(guide, "`"+folder+"`") || strings.Contains(guide, "`"+path.Base(folder)+"`")
		if !named && below == folder && folder != "." && !strings.HasPrefix(folder, "cmd/") {
			t.Errorf("docs/contributing.md does not say what %s is", folder)
		}
		if !slices.ContainsFunc(readSources(t), func(s source) bool { return path.Dir(s.path) == folder }) {
			t.Errorf("%s has a row in the layout, and no Go file", folder)
		}
	}
}

// layoutProblems compares the packages with their rows: imports and doc.go. It reads the files of all
// systems instead of running the go command, whose reads the test cache would not notice.
func layoutProblems(sources []source) (problems []string) {
	docs := map[string]int{}
	for _, s := range sources {
		folder := path.Dir(s.path)
		for _, imported := range s.imports() {
			if !s.mayImport(imported) {
				problems = append(problems, fmt.Sprintf("%s imports %s: its row in the layout does not say so", s.path, imported))
			}
		}
		if docs[folder] += 0; (path.Base(s.path) == "doc.go" || s.path == "main.go") && s.file.Doc != nil {
			docs[folder] = s.lineOf(s.file.Doc.End()) - s.lineOf(s.file.Doc.Pos()) + 1
		}
	}
	for folder, lines := range docs {
		if _, ok := rowOf(folder); !ok && folder[0] != '.' {
			problems = append(problems, folder+" has no row in the layout")
		}
		if lines < docLinesMin || lines > docLinesMax {
			problems = append(problems, fmt.Sprintf("%s/doc.go has a package comment of %d lines: at least %d, at most %d", folder, lines, docLinesMin, docLinesMax))
		}
	}
	return problems
}

// rowOf returns the row of a package. Those of one command share one.
func rowOf(folder string) (row, bool) {
	if r, ok := layout[folder]; ok || !strings.HasPrefix(folder, "cmd/") {
		return r, ok
	}
	return layout["cmd/..."], true
}

// mayImport reports whether the row of the file's package allows an import.
func (s source) mayImport(imported string) bool {
	row, _ := rowOf(path.Dir(s.path))
	ours, isOurs := strings.CutPrefix(imported, module)
	first, _, _ := strings.Cut(imported, "/")
	switch allowed := strings.Fields(row.may); {
	case path.Dir(s.path)[0] == '.' && len(path.Dir(s.path)) > 1: // programs of .ci, some of modules of their own
		return true
	case !s.isTest() && slices.Contains(strings.Fields(neverAtAll), imported):
		return false
	case row.standalone && s.isTest():
		return !strings.Contains(first, ".") || ours == path.Dir(s.path)
	case isOurs:
		return s.isTest() || slices.Contains(allowed, ours) || strings.HasPrefix(ours, "cmd/") && slices.Contains(allowed, "cmd/...")
	case !strings.Contains(first, "."): // the standard library
		return s.isTest() || !slices.Contains(strings.Fields(row.never), imported)
	default:
		if s.isTest() {
			allowed = slices.Concat(allowed, strings.Fields(row.tests), strings.Fields(everyTest))
		}
		name := strings.TrimPrefix(imported, "github.com/")
		return slices.ContainsFunc(allowed, func(library string) bool { return name == library || strings.HasPrefix(name, library+"/") })
	}
}

// placeProblems finds files in wrong places: new entries of the root, and code in packaging.
func placeProblems(files []string) (problems []string) {
	for _, file := range files {
		top, _, _ := strings.Cut(file, "/")
		if !slices.Contains(strings.Fields(topLevel), top) {
			problems = append(problems, top+" has no place at the top of the repository (topLevel)")
		}
		if top == "packaging" && path.Ext(file) == ".go" && path.Base(file) != "doc.go" && !strings.HasSuffix(file, "_test.go") {
			problems = append(problems, file+" has no place: packaging holds no code but tests")
		}
	}
	return problems
}

// topLevel lists the entries of the root; main.go is the only Go file.
const topLevel = `cmd node engine actors wal httpapi collectors bench docs packaging main.go
go.mod go.sum Makefile README.md LICENSE CHANGELOG.md Dockerfile .golangci.yml .ci .github .gitignore .dockerignore`
