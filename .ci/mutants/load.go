package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is one file of the package.
type source struct {
	name   string // in the repository: wal/frame.go
	path   string
	text   []byte
	syntax *ast.File
	wanted bool // its mutants count
}

// checked is a package with its types.
type checked struct {
	dir    string
	path   string // of import
	fset   *token.FileSet
	files  []*source
	info   *types.Info
	types  *types.Package
	digest string // of the wanted files
}

// listed is what is read of the output of go list.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
}

func load(ctx context.Context, p part) (*checked, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Name,Export,GoFiles", "./"+p.dir).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	var last listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		exports[l.ImportPath], last = l.Export, l // the package itself comes last
	}
	c := &checked{dir: p.dir, path: last.ImportPath, fset: token.NewFileSet()}
	if err := c.parse(p, last); err != nil {
		return nil, err
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(c.fset, "gc", lookup)}
	c.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	var syntax []*ast.File
	for _, f := range c.files {
		syntax = append(syntax, f.syntax)
	}
	if c.types, err = config.Check(c.path, c.fset, syntax, c.info); err != nil {
		return nil, fmt.Errorf("check types: %w", err)
	}
	return c, nil
}

func (c *checked) parse(p part, l listed) error {
	sum := sha256.New()
	for _, name := range l.GoFiles {
		f := &source{name: p.dir + "/" + name, path: filepath.Join(l.Dir, name)}
		var err error
		if f.text, err = os.ReadFile(f.path); err != nil {
			return fmt.Errorf("read the package: %w", err)
		}
		if f.syntax, err = parser.ParseFile(c.fset, f.path, f.text, parser.SkipObjectResolution|parser.ParseComments); err != nil {
			return fmt.Errorf("parse the package: %w", err)
		}
		f.wanted = p.has(name) && !ast.IsGenerated(f.syntax)
		if f.wanted {
			sum.Write(f.text)
		}
		c.files = append(c.files, f)
	}
	c.digest = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// textOf is the source between two positions of a file.
func (c *checked) textOf(f *source, from, to token.Pos) string {
	return string(f.text[c.fset.Position(from).Offset:c.fset.Position(to).Offset])
}

func (c *checked) of(f *source, n ast.Node) string { return c.textOf(f, n.Pos(), n.End()) }
