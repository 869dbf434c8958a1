package main

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// serverText is how a server is set up in the source: the fields of its literal, and the constants of the settings.
type serverText struct {
	fields    []string
	constants map[string]string
}

// readServer finds the fields of the HTTP server that a function makes, and the constants in the folder of the file.
func readServer(t *testing.T, folder, file, function string) serverText {
	t.Helper()
	found := serverText{constants: map[string]string{}}
	names, err := filepath.Glob(folder + "/*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("no Go files in %s: %v", folder, err)
	}
	set := token.NewFileSet()
	for _, name := range names {
		source, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(source, func(node ast.Node) bool {
			if spec, is := node.(*ast.ValueSpec); is && len(spec.Names) == 1 && len(spec.Values) == 1 {
				var text strings.Builder
				if err := printer.Fprint(&text, set, spec.Values[0]); err != nil {
					t.Fatal(err)
				}
				found.constants[spec.Names[0].Name] = text.String()
			}
			if made, is := node.(*ast.FuncDecl); is && filepath.Base(name) == file && made.Name.Name == function {
				found.fields = fieldsOf(made)
			}
			return true
		})
	}
	return found
}

// fieldsOf are the keys of the literals in a function.
func fieldsOf(function *ast.FuncDecl) (fields []string) {
	ast.Inspect(function, func(node ast.Node) bool {
		if pair, is := node.(*ast.KeyValueExpr); is {
			if key, is := pair.Key.(*ast.Ident); is {
				fields = append(fields, key.Name)
			}
		}
		return true
	})
	slices.Sort(fields)
	return fields
}

// TestBare_HasTheNodesSettings holds the bare server to the node's, so that nobody tunes one and forgets the other.
func TestBare_HasTheNodesSettings(t *testing.T) {
	node := readServer(t, "../httpapi", "server.go", "newHTTP")
	bare := readServer(t, ".", "bare.go", "bareServer")
	ours := slices.DeleteFunc(node.fields, func(name string) bool { return name == "ErrorHandler" || name == "Logger" })
	if !slices.Equal(ours, bare.fields) || len(ours) < 10 {
		t.Errorf("the node's server has %v, the bare one %v", ours, bare.fields)
	}
	for _, name := range []string{
		"readTimeoutDefault", "writeTimeoutDefault", "idleTimeoutDefault", "headerBytesMaxDefault", "bodyBytesMaxDefault",
		"writeBufferBytesDefault", "connsDefault",
	} {
		if want, got := node.constants[name], bare.constants[name]; want != got || got == "" {
			t.Errorf("%s is %q, the node's %q; there is %v", name, got, want, slices.Sorted(maps.Keys(node.constants)))
		}
	}
}

// TestBare_AllocatesNothing: a yardstick that makes garbage would flatter the node.
func TestBare_AllocatesNothing(t *testing.T) {
	raw := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nETag: W/\"x\"\r\n\r\n{}")
	for _, replies := range [][]reply{
		{{Target: "/a", Raw: raw}},
		{{Target: "/a", Raw: raw}, {Target: "/b?amount=", Amounts: true, Raw: raw}},
	} {
		handler, err := bareHandler(replies)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range []string{"/a", "/b?amount=17.05"} {
			var ctx fasthttp.RequestCtx
			ctx.Request.SetRequestURI(target)
			handler(&ctx)
			if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 200 || got != "{}" {
				t.Errorf("%s: %d %s", target, ctx.Response.StatusCode(), got)
			}
			if count := testing.AllocsPerRun(100, func() { handler(&ctx) }); count != 0 {
				t.Errorf("%s costs %v allocations", target, count)
			}
		}
	}
}

func FuzzReply(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nETag: W/\"x\"\r\n\r\n{}"))
	f.Add([]byte("HTTP/1.1 200 OK\r\n: \r\n\r\n"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := bareHandler([]reply{{Target: "/", Raw: raw}}); err == nil && len(raw) == 0 {
			t.Error("nothing is taken for a reply")
		}
	})
}
