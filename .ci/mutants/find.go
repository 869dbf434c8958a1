package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// mutant is one planted fault.
type mutant struct {
	id       int
	key      string // file, function, what becomes what: the same as long as the code is
	line     int
	file     *source
	from, to token.Pos // what is replaced
	text     string    // by what
	constant bool      // needs a build of its own
	broken   bool      // does not compile: no mutant
}

// site is a place with its mutants: an expression of a type, or a statement.
type site struct {
	file     *source
	from, to token.Pos
	kind     string // type of the expression; "" for a statement
	mutants  []*mutant
}

// finder walks through the files.
type finder struct {
	*checked
	file     *source
	function string
	results  []*types.Tuple // of the functions around
	sites    map[[2]token.Pos]*site
	mutants  []*mutant
	seen     map[string]int
	beside   map[ast.Expr]bool // a zero beside an error: nobody looks at it
}

func find(c *checked) ([]*mutant, []*site) {
	f := &finder{checked: c, sites: map[[2]token.Pos]*site{}, seen: map[string]int{}, beside: map[ast.Expr]bool{}}
	for _, file := range c.files {
		if !file.wanted {
			continue
		}
		f.file = file
		for _, d := range file.syntax.Decls {
			f.declaration(d)
		}
	}
	var sites []*site
	for _, s := range f.sites {
		sites = append(sites, s)
	}
	return f.mutants, sites
}

func (f *finder) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		f.function = functionName(d)
		if d.Body != nil {
			signature, _ := f.info.Defs[d.Name].Type().(*types.Signature)
			f.results = []*types.Tuple{signature.Results()}
			f.walk(d.Body)
		}
	case *ast.GenDecl:
		f.results = nil
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				f.function = v.Names[0].Name
				f.values(d.Tok, v)
			}
		}
	}
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	if name, ok := t.(*ast.Ident); ok {
		return name.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

func (f *finder) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool { return f.node(n) })
}

// node plants what a node allows and says whether to go on inside.
func (f *finder) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		signature, _ := f.info.TypeOf(n).(*types.Signature)
		f.results = append(f.results, signature.Results())
		f.walk(n.Body)
		f.results = f.results[:len(f.results)-1]
		return false
	case *ast.ArrayType, *ast.StructType, *ast.FuncType, *ast.InterfaceType, *ast.MapType:
		return false
	case *ast.DeclStmt:
		if g, ok := n.Decl.(*ast.GenDecl); ok && g.Tok != token.VAR {
			return false
		}
	case *ast.CompositeLit:
		f.composite(n)
		return false
	case *ast.IfStmt:
		f.guard(n)
	case *ast.ReturnStmt:
		f.returned(n)
	case *ast.IncDecStmt:
		f.step(n)
	case *ast.AssignStmt:
		f.assignment(n)
	case ast.Expr:
		if f.beside[n] {
			return false
		}
		if value := f.info.Types[n]; value.Value != nil {
			f.constantExpression(n, value.Type)
			return false
		}
		f.expression(n)
	}
	return true
}

// composite passes over the keys: those of arrays must be constants.
func (f *finder) composite(n *ast.CompositeLit) {
	for _, element := range n.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			element = pair.Value
		}
		f.walk(element)
	}
}

func swaps() map[token.Token][]token.Token {
	return map[token.Token][]token.Token{
		token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
		token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
		token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
		token.AND: {token.OR}, token.OR: {token.AND}, token.XOR: {token.AND}, token.AND_NOT: {token.AND}, token.SHL: {token.SHR}, token.SHR: {token.SHL},
		token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN}, token.MUL_ASSIGN: {token.QUO_ASSIGN}, token.QUO_ASSIGN: {token.MUL_ASSIGN},
		token.REM_ASSIGN: {token.MUL_ASSIGN}, token.AND_ASSIGN: {token.OR_ASSIGN}, token.OR_ASSIGN: {token.AND_ASSIGN}, token.XOR_ASSIGN: {token.AND_ASSIGN},
		token.SHL_ASSIGN: {token.SHR_ASSIGN}, token.SHR_ASSIGN: {token.SHL_ASSIGN}, token.AND_NOT_ASSIGN: {token.AND_ASSIGN},
	}
}

// expression: comparisons, arithmetic, and, or, not.
func (f *finder) expression(n ast.Expr) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if basic, ok := f.info.TypeOf(n).Underlying().(*types.Basic); !ok || basic.Info()&types.IsString != 0 {
			return
		}
		for _, other := range swaps()[n.Op] {
			f.plant(n, f.info.TypeOf(n), fmt.Sprintf("(%s) %s (%s)", f.of(f.file, n.X), other, f.of(f.file, n.Y)), n.Op.String()+" to "+other.String())
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT || n.Op == token.SUB {
			f.plant(n, f.info.TypeOf(n), f.of(f.file, n.X), "without "+n.Op.String())
		}
	}
}

// guard drops an early end: the condition is never true.
func (f *finder) guard(n *ast.IfStmt) {
	if len(n.Body.List) == 0 || f.info.Types[n.Cond].Value != nil {
		return
	}
	switch last := n.Body.List[len(n.Body.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		f.plant(n.Cond, f.info.TypeOf(n.Cond), "false", "never")
	case *ast.ExprStmt:
		if call, ok := last.X.(*ast.CallExpr); ok && f.of(f.file, call.Fun) == "panic" {
			f.plant(n.Cond, f.info.TypeOf(n.Cond), "false", "never")
		}
	}
}

func (f *finder) step(n *ast.IncDecStmt) {
	other := map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok]
	f.plant(n, nil, f.of(f.file, n.X)+other, n.Tok.String()+" to "+other)
}

func (f *finder) assignment(n *ast.AssignStmt) {
	if len(n.Lhs) != 1 {
		return
	}
	if basic, ok := f.info.TypeOf(n.Lhs[0]).(interface{ Underlying() types.Type }); ok {
		if b, ok := basic.Underlying().(*types.Basic); !ok || b.Info()&types.IsString != 0 {
			return
		}
	}
	for _, other := range swaps()[n.Tok] {
		f.plant(n, nil, fmt.Sprintf("%s %s %s", f.of(f.file, n.Lhs[0]), other, f.of(f.file, n.Rhs[0])), n.Tok.String()+" to "+other.String())
	}
}

// plant adds a mutant of a node. An expression needs a type that can be written in this file.
func (f *finder) plant(n ast.Node, t types.Type, text, what string) {
	at := [2]token.Pos{n.Pos(), n.End()}
	s := f.sites[at]
	if s == nil {
		s = &site{file: f.file, from: n.Pos(), to: n.End()}
		if t != nil {
			if s.kind = f.typeText(t); s.kind == "" {
				return
			}
		}
		f.sites[at] = s
	}
	s.mutants = append(s.mutants, f.add(n.Pos(), n.End(), text, what, false))
}

func (f *finder) add(from, to token.Pos, text, what string, constant bool) *mutant {
	key := fmt.Sprintf("%s %s: %s [%s]", f.file.name, f.function, strings.Join(strings.Fields(f.textOf(f.file, from, to)), " "), what)
	f.seen[key]++
	if n := f.seen[key]; n > 1 {
		key = fmt.Sprintf("%s #%d", key, n)
	}
	m := &mutant{id: len(f.mutants) + 1, key: key, line: f.fset.Position(from).Line, file: f.file, from: from, to: to, text: text, constant: constant}
	f.mutants = append(f.mutants, m)
	return m
}

// typeText writes a type as this file would, or "" when it cannot.
func (f *finder) typeText(t types.Type) string {
	possible := true
	text := types.TypeString(types.Default(t), func(p *types.Package) string {
		if p == f.types {
			return ""
		}
		for _, spec := range f.file.syntax.Imports {
			if strings.Trim(spec.Path.Value, `"`) == p.Path() {
				if spec.Name != nil {
					return spec.Name.Name
				}
				return p.Name()
			}
		}
		possible = false
		return p.Name()
	})
	if !possible || strings.Contains(text, "invalid type") {
		return ""
	}
	return text
}
