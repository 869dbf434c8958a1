package faults

import (
	"errors"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPlantedBugsApply finds the planted bugs of the fault tests whose text is no longer in the program. The fault
// tests take hours and run rarely; without this test a control would be found broken long after the change.
func TestPlantedBugsApply(t *testing.T) {
	names, err := filepath.Glob("*_test.go")
	above, errAbove := filepath.Glob("../*_test.go")
	if err = errors.Join(err, errAbove); err != nil {
		t.Fatal(err)
	}
	planted := 0
	for _, name := range slices.Concat(names, above) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		texts := constantTexts(file)
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || call.Ellipsis.IsValid() {
				return true
			}
			skip, plants := map[string]int{"buildMutant": 2, "replaceText": 1, "buildNode": 1, "plant": 0}[calledName(call)] // arguments before the file
			if plants && checkPlanted(t, name, call.Args[skip:], texts) {
				planted++
			}
			return true
		})
	}
	if planted < 20 {
		t.Errorf("only %d planted bugs were found in the sources: the search is broken", planted)
	}
}

// checkPlanted wants each text that a planted bug replaces to be in its file. It returns false for a file outside the
// module.
func checkPlanted(t *testing.T, name string, args []ast.Expr, texts map[string]constant.Value) bool {
	t.Helper()
	path := textOf(args[0], texts)
	if path == "" {
		return false // a file of the standard library, found at run time
	}
	source, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Errorf("%s plants a bug: %v", name, err)
		return false
	}
	changes := args[1:]
	for i := 0; i+1 < len(changes); i += 2 {
		old := textOf(changes[i], texts)
		if old == "" {
			t.Errorf("%s: the text that a planted bug replaces in %s is no constant", name, path)
		} else if count := strings.Count(string(source), old); count != 1 {
			t.Errorf("%s plants a bug in %s in place of %q, which is there %d times", name, path, old, count)
		}
	}
	return true
}

func calledName(call *ast.CallExpr) string {
	if name, is := call.Fun.(*ast.Ident); is {
		return name.Name
	}
	return ""
}

// constantTexts returns the text constants of a file, in functions too.
func constantTexts(file *ast.File) map[string]constant.Value {
	texts := map[string]constant.Value{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, is := n.(*ast.ValueSpec); is {
			for i := range spec.Values {
				if text := textOf(spec.Values[i], texts); text != "" {
					texts[spec.Names[i].Name] = constant.MakeString(text)
				}
			}
		}
		return true
	})
	return texts
}

// textOf returns the value of a text constant: a literal, a name, or a sum of these. It returns "" for anything else.
func textOf(expression ast.Expr, texts map[string]constant.Value) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0))
		}
	case *ast.Ident:
		if value := texts[e.Name]; value != nil {
			return constant.StringVal(value)
		}
	case *ast.BinaryExpr:
		left, right := textOf(e.X, texts), textOf(e.Y, texts)
		if left != "" && right != "" {
			return left + right
		}
	}
	return ""
}
