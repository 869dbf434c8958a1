package apitest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// heavy is what nobody who tests a client should have to build: what only commands, mail, collectors, pages and clusters need.
// (The Prometheus client comes with the library of the actors.)
func heavy() []string {
	return []string{
		"testing", "github.com/spf13", "github.com/BurntSushi", "github.com/wneessen", "github.com/PuerkitoBio", "github.com/xuri",
		"github.com/temoto", "golang.org/x/net/html", "github.com/nats-io",
		"github.com/tasard/tasard/collectors", "github.com/tasard/tasard/actors/mail", "github.com/tasard/tasard/bench", "html/template",
	}
}

// heavyIn are the packages that a program has and the harness must not.
func heavyIn(packages []string) (found []string) {
	for _, p := range packages {
		if slices.ContainsFunc(heavy(), func(h string) bool { return p == h || strings.HasPrefix(p, h+"/") }) {
			found = append(found, p)
		}
	}
	return found
}

// TestDependencies: the whole graph below the harness, not only its own imports.
func TestDependencies(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "github.com/tasard/tasard/actors") {
		t.Fatalf("go list names %d packages, and not those of the harness", len(packages))
	}
	if found := heavyIn(packages); len(found) > 0 {
		t.Errorf("whoever imports the harness builds %q too", found)
	}
}

// TestDependencies_Control: each of these would be told.
func TestDependencies_Control(t *testing.T) {
	for _, planted := range []string{"testing", "github.com/spf13/cobra", "github.com/tasard/tasard/collectors/source", "github.com/PuerkitoBio/goquery"} {
		if len(heavyIn([]string{"net/http", planted})) != 1 {
			t.Errorf("%s is not told", planted)
		}
	}
}
