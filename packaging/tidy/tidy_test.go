package tidy_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// goroutineFiles lists the files that may start goroutines, each with the
// owner that waits for them. Tests are exempt: goleak checks them.
func goroutineFiles() map[string]string {
	return map[string]string{
		"actors/cluster/cluster.go":             "taskGroup.wait, in Cluster.Close",
		"actors/cluster/transport.go":           "transport.write",
		"actors/internal/commitlog/follower.go": "follower.stop, in System.Close",
		"actors/mail/smtp.go":                   "attempt: stops the call that closes its connection",
		"actors/mail/mailer.go":                 "Mailer.Close, which waits for the worker",
		"actors/internal/accounts/shard.go":     "Accounts.Stop, in System.Close",
		"actors/internal/accounts/clock.go":     "writeTimer.stop, in Accounts.ReturnLeases, in System.Close",
		"actors/mailbox/dispatcher.go":          "mailbox.System.Close, at the end of System.Close",
		"actors/system.go":                      "System.Close: waits for the replay",
		"actors/internal/commitlog/log.go":      "worker.stop, in System.Close",
		"bench/server.go":                       "runBare: closes the listener when its context ends",
		"bench/process.go":                      "process.stop or kill: waits for the end of the process",
		"bench/load.go":                         "generator.drive: waits for every client",
		"collectors/collector.go":               "Collector.Run: waits for every source",
		"collectors/fetch/client.go":            "closes a connection at the end of its Fetch",
		"collectors/simulated/site.go":          "Site.Close: waits for the accept loops and for every connection",
		"cmd/sources/check.go":                  "checkAll: waits for every check",
		"httpapi/apitest/acceptor.go":           "acceptor.close: waits for the accept loop and for every connection",
		"cmd/internal/input/input.go":           "the context of the command: only one that reads stdin may outlive it",
		"cmd/run.go":                            "none runs on: it gives the second signal its usual effect, then ends",
		"node/collect.go":                       "collection.stop: waits for the collector",
		"node/tls.go":                           "redirectServer.stop: the server's accept loop",
		"node/server.go":                        "httpServer.stop: the server's accept loop",
		"node/node.go":                          "Node.Close: waits for what goes on beside the callers",
		"httpapi/admin/server.go":               "Server.Stop: the server's accept loop",
		"httpapi/admin/client.go":               "none runs on: BackupStream.Close stops its timer",
		"cmd/internal/terminal/logging.go":      "LogQueue.Close: waits, but only a second if nothing reads the log",
		"cmd/mock.go":                           "none runs on: it closes the server of the controls",
		"cmd/systemd.go":                        "notifier.stop, in serve",
		"cmd/serve.go":                          "takeInBeside: waits for the import",
	}
}

func TestTidy(t *testing.T) {
	started := map[string]bool{}
	for _, s := range readSources(t) {
		starts := goroutines(s)
		started[s.path] = len(starts) > 0
		if goroutineFiles()[s.path] == "" && !s.isTest() {
			for _, problem := range starts {
				t.Error(problem)
			}
		}
		if layout[path.Dir(s.path)].exact && !s.isTest() {
			for _, problem := range binaryFloats(s) {
				t.Error(problem)
			}
		}
	}
	for name := range goroutineFiles() {
		if !started[name] {
			t.Errorf("%s is in goroutineFiles but starts no goroutine", name)
		}
	}
	for _, name := range files() {
		if text := readText(t, name); utf8.ValidString(text) { // else a sample in another encoding, or not text
			for _, problem := range textProblems(name, text) {
				t.Error(problem)
			}
		}
	}
}

// goroutines finds go statements, the Go method of wait groups, and AfterFunc of timers and contexts.
func goroutines(s source) (problems []string) {
	ast.Inspect(s.file, func(node ast.Node) bool {
		_, starts := node.(*ast.GoStmt)
		if call, ok := node.(*ast.CallExpr); ok && len(call.Args) > 0 {
			selector, ok := call.Fun.(*ast.SelectorExpr)
			starts = ok && (selector.Sel.Name == "Go" || selector.Sel.Name == "AfterFunc")
		}
		if starts {
			problems = append(problems, fmt.Sprintf("%s:%d: starts a goroutine; name its owner in goroutineFiles or do without", s.path, s.lineOf(node.Pos())))
		}
		return true
	})
	return problems
}

// binaryFloats finds float types, float literals, and functions of strconv that make floats.
func binaryFloats(s source) (problems []string) {
	names := regexp.MustCompile(`^(float32|float64|complex64|complex128|ParseFloat|FormatFloat|AppendFloat)$`)
	ast.Inspect(s.file, func(node ast.Node) bool {
		found := ""
		if name, ok := node.(*ast.Ident); ok {
			found = names.FindString(name.Name)
		}
		if number, ok := node.(*ast.BasicLit); ok && number.Kind == token.FLOAT && strings.Contains(number.Value, ".") {
			found = number.Value
		}
		if found != "" {
			problems = append(problems, fmt.Sprintf("%s:%d: %s in a package that holds exact money", s.path, s.lineOf(node.Pos()), found))
		}
		return true
	})
	return problems
}

// textProblems finds texts that no file may contain: paths and hosts of one machine or network, replace directives,
// with which go install refuses the module, and marks of unfinished work (in Go files only in comments: one of them
// is also the ISO 4217 code for "no currency"). The patterns are concatenated so that this file does not find itself.
func textProblems(name, text string) (problems []string) {
	find := func(why, words, pattern string) {
		for i, line := range strings.Split(text, "\n") {
			// Each match contains one of the words, and looking for them is a hundred times as fast.
			if !slices.ContainsFunc(strings.Fields(words), func(word string) bool { return strings.Contains(line, word) }) {
				continue
			}
			if found := regexp.MustCompile(pattern).FindString(line); found != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %q: %s", name, i+1, found, why))
			}
		}
	}
	find("a path of one machine", "/wo"+"rk/ /ro"+"ot/ /ho"+"me/ /Us"+"ers/", `(^|[^\w.$})])/(wo`+`rk|ro`+`ot|ho`+`me/\w+|Us`+`ers/\w+)/`)
	find("a host of one network", "://", `://[\w.-]+\.(inter`+`nal|l`+`an|co`+`rp|lo`+`cal)\b`)
	const marks, pattern = "TO" + "DO FIX" + "ME X" + "XX", `\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`
	switch path.Ext(name) {
	case ".go":
		find("finish it or leave it out", marks, `(//|/\*).*`+pattern)
	case ".mod":
		find("install what is published instead", "replace", `^\s*replace\b`)
	}
	if path.Ext(name) != ".go" && path.Ext(name) != ".sum" && !strings.Contains(name, "testdata/") {
		find("finish it or leave it out", marks, pattern)
	}
	return problems
}
