package httpapi

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestLog_EveryLineOfARequestHasItsID looks at every line that a server logs: it has the id of its request, or concerns none.
func TestLog_EveryLineOfARequestHasItsID(t *testing.T) {
	withoutRequest := map[string]string{
		"http library": "what the library complains about has no id yet",
		"newcomers may wait 20 ms for their turn while the node is busy": "it is about the server",
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "listener.go" { // a listener knows connections, and no request
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			var text bytes.Buffer
			if err := printer.Fprint(&text, set, call); err != nil {
				t.Fatal(err)
			}
			if to, _, _ := strings.Cut(text.String(), "("); !strings.Contains(to, ".log.") {
				return true
			}
			lines++
			for message := range withoutRequest {
				if strings.Contains(text.String(), message) {
					return true
				}
			}
			if !strings.Contains(text.String(), `"requestId"`) {
				t.Errorf("%s: a line without the id of its request: %s", set.Position(call.Pos()), text.String())
			}
			return true
		})
	}
	if lines < 5 {
		t.Errorf("found only %d lines", lines)
	}
}

// TestAccess_Panic: of a request that ended in a panic the log has the id that the caller got, also when an answer was made already, whose
// head has another.
func TestAccess_Panic(t *testing.T) {
	var told []Access
	g := newGated(t, func(c *Config) { c.Access = func(a Access) { told = append(told, a) } })
	plantPanics(g.server)
	for _, where := range []string{"before", "behind"} {
		a := g.get(t, goldenTargets()["best"], plantHeader+": "+where)
		if last := told[len(told)-1]; last.RequestID != a.header.Get(headerRequestID) || last.RequestID == "" || last.Status != 500 {
			t.Errorf("a panic %s: the caller got the id %s, the log %+v", where, a.header.Get(headerRequestID), last)
		}
	}
}
