package main_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTidy_PlantedBugsHaveTheirPlace: the long fault tests plant bugs by replacing a text in a file, some of them after an hour. Here it is
// seen at once that a change took such a text away.
func TestTidy_PlantedBugsHaveTheirPlace(t *testing.T) {
	found := 0
	for _, s := range readSources(t) {
		if !strings.HasPrefix(s.path, "bench/") || !strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		for file, texts := range plants(s) {
			source := readText(t, file)
			for _, text := range texts {
				if found++; strings.Count(source, text) != 1 {
					t.Errorf("%s plants a bug in %s: want once, found %d times:\n%s", s.path, file, strings.Count(source, text), text)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("%d planted bugs were found, there are more: this test looks at the wrong place", found)
	}
}

// plants are the texts that a test replaces, by file: what stands behind the name of a file of ours among the arguments of a call or the
// fields of a table's row, and every second one behind that.
func plants(s source) map[string][]string {
	found := map[string][]string{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		var all []ast.Expr
		switch n := n.(type) {
		case *ast.CallExpr:
			all = n.Args
		case *ast.CompositeLit:
			all = n.Elts
		}
		for i, one := range all {
			file, is := literal(one)
			if !is || path.Ext(file) != ".go" || !strings.Contains(file, "/") || strings.ContainsAny(file, " \n") {
				continue
			}
			for k := i + 1; k < len(all); k += 2 {
				if text, is := literal(all[k]); is && !slices.Contains(found[file], text) {
					found[file] = append(found[file], text)
				}
			}
		}
		return true
	})
	return found
}

// literal is the text of a string, also of one in several pieces.
func literal(e ast.Expr) (text string, is bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, is := literal(e.X)
		right, too := literal(e.Y)
		return left + right, is && too && e.Op == token.ADD
	}
	return "", false
}
