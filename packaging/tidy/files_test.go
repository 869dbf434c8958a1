package tidy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

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
