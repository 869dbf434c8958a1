package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// values plants in the declaration of variables and constants of the package.
func (f *finder) values(kind token.Token, v *ast.ValueSpec) {
	for _, value := range v.Values {
		switch {
		case kind == token.VAR:
			f.walk(value)
		case !strings.Contains(f.of(f.file, value), "iota"):
			for _, l := range f.literals(value) {
				for _, other := range neighbours(l.Value) {
					f.add(l.Pos(), l.End(), other, "constant "+other, true)
				}
			}
		}
	}
}

// literals are the whole numbers in a constant expression; modes of files (0o600) are not counted with.
func (f *finder) literals(e ast.Expr) []*ast.BasicLit {
	var found []*ast.BasicLit
	ast.Inspect(e, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.INT && !strings.HasPrefix(l.Value, "0o") {
			found = append(found, l)
		}
		return true
	})
	return found
}

// neighbours of a number: one more, one less.
func neighbours(literal string) []string {
	n, err := strconv.ParseInt(strings.ReplaceAll(literal, "_", ""), 0, 64)
	if err != nil {
		return nil
	}
	return []string{strconv.FormatInt(n+1, 10), "(" + strconv.FormatInt(n-1, 10) + ")"}
}

// constantExpression moves each number in it by one.
func (f *finder) constantExpression(e ast.Expr, t types.Type) {
	basic, ok := t.Underlying().(*types.Basic)
	if !ok || basic.Info()&types.IsNumeric == 0 {
		return
	}
	for _, l := range f.literals(e) {
		for _, other := range neighbours(l.Value) {
			if strings.HasPrefix(other, "(-") && basic.Info()&types.IsUnsigned != 0 {
				continue
			}
			f.plant(e, t, f.textOf(f.file, e.Pos(), l.Pos())+other+f.textOf(f.file, l.End(), e.End()), "constant "+other)
		}
	}
}

// returned gives back another value: the opposite, one more, nothing.
func (f *finder) returned(n *ast.ReturnStmt) {
	results := f.results[len(f.results)-1]
	if len(n.Results) == 0 || len(n.Results) != results.Len() {
		return
	}
	failed := f.failure(n.Results[len(n.Results)-1], results.At(results.Len()-1).Type())
	for i, r := range n.Results {
		if failed && i < len(n.Results)-1 && f.of(f.file, r) == "0" {
			f.beside[r] = true
			continue
		}
		if text, what := f.otherResult(r, results.At(i).Type()); text != "" {
			f.plant(r, results.At(i).Type(), text, what)
		}
	}
}

// failure says that the last of several results is an error, a fault of the log or false.
func (f *finder) failure(last ast.Expr, t types.Type) bool {
	was := f.of(f.file, last)
	if was == "nil" || was == "false" {
		return was == "false"
	}
	fails, _ := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	return types.Implements(t, fails) || strings.HasSuffix(t.String(), "fault")
}

// otherResult is what to return instead, or "".
func (f *finder) otherResult(r ast.Expr, t types.Type) (text, what string) {
	was := f.of(f.file, r)
	if was == "nil" || was == `""` {
		return "", ""
	}
	if _, ok := t.(*types.TypeParam); ok {
		return "", ""
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsBoolean != 0:
			if _, ok := r.(*ast.BinaryExpr); ok { // its operator is turned already
				return "", ""
			}
			return "!(" + was + ")", "return the opposite"
		case u.Info()&types.IsString != 0:
			return `""`, "return nothing"
		case u.Info()&types.IsInteger != 0:
			if _, ok := r.(*ast.BasicLit); ok { // moved by one already
				return "", ""
			}
			return "(" + was + ") + 1", "return one more"
		}
	case *types.Pointer, *types.Slice, *types.Map, *types.Interface, *types.Signature, *types.Chan:
		return "nil", "return nil"
	case *types.Struct, *types.Array:
		if !strings.HasSuffix(was, "{}") {
			return fmt.Sprintf("*new(%s)", f.typeText(t)), "return nothing"
		}
	}
	return "", ""
}
