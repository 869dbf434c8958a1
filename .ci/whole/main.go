package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "whole:", err)
		os.Exit(1)
	}
}

func run(roots []string) error {
	var folders, tests []string
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch name := entry.Name(); {
			case err != nil || !entry.IsDir():
				return err
			case len(name) > 1 && name[0] == '.' || name == "testdata" || name == "node_modules":
				return filepath.SkipDir
			}
			found, err := sampled(path)
			if len(found) > 0 {
				folders, tests = append(folders, "./"+path), append(tests, found...)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if len(tests) == 0 {
		return errors.New("no test does less under the race detector")
	}
	fmt.Printf("%d tests of %d folders\n", len(tests), len(folders))
	cmd := exec.Command("go", append([]string{"test", "-shuffle=on", "-timeout", "5m", "-run", "^(" + strings.Join(tests, "|") + ")$"}, folders...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// uses are the names that each declaration of a folder's tests mentions.
type uses map[string][]string

// sampled are the tests of a folder that do less under the race detector.
func sampled(path string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(path, "*_test.go"))
	if err != nil {
		return nil, err
	}
	found, doubtful := uses{}, map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		switch race, other := constrained(file); {
		case race:
			for name := range file.Scope.Objects {
				doubtful[name] = true
			}
		case !other:
			found.add(file)
		}
	}
	for more := true; more; {
		more = false
		for name, mentioned := range found {
			if !doubtful[name] && slices.ContainsFunc(mentioned, func(one string) bool { return doubtful[one] }) {
				doubtful[name], more = true, true
			}
		}
	}
	var tests []string
	for name := range found {
		if doubtful[name] && strings.HasPrefix(name, "Test") && name != "TestMain" {
			tests = append(tests, name)
		}
	}
	slices.Sort(tests)
	return tests, nil
}

// constrained tells whether a file is for the race detector, or for anything else that make test does not ask for.
func constrained(file *ast.File) (race, other bool) {
	for _, group := range file.Comments {
		for _, line := range group.List {
			if expression, err := constraint.Parse(line.Text); err == nil && group.End() < file.Package {
				race = expression.String() == "race"
				return race, !expression.Eval(func(tag string) bool { return tag == "linux" || tag == "unix" })
			}
		}
	}
	return false, false
}

// add notes what the declarations of a file mention. Methods go by their names alone: rather one test too many.
func (u uses) add(file *ast.File) {
	for _, declaration := range file.Decls {
		var names []string
		ast.Inspect(declaration, func(node ast.Node) bool {
			if name, is := node.(*ast.Ident); is {
				names = append(names, name.Name)
			}
			return true
		})
		switch one := declaration.(type) {
		case *ast.FuncDecl:
			u[one.Name.Name] = append(u[one.Name.Name], names...)
		case *ast.GenDecl:
			for _, spec := range one.Specs {
				if value, is := spec.(*ast.ValueSpec); is {
					for _, name := range value.Names {
						u[name.Name] = append(u[name.Name], names...)
					}
				}
			}
		}
	}
}
