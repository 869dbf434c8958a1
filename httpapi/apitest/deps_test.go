package apitest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// forbiddenImports are packages that a test of a client should not have to build.
func forbiddenImports() []string {
	return []string{
		"testing", "github.com/spf13", "github.com/BurntSushi", "github.com/wneessen", "github.com/PuerkitoBio", "github.com/xuri",
		"golang.org/x/net/html", "go.etcd.io/raft",
		"github.com/tasard/tasard/collectors", "github.com/tasard/tasard/actors/mail", "github.com/tasard/tasard/bench",
	}
}

// forbiddenIn returns the packages that are forbidden, or below a forbidden one.
func forbiddenIn(packages []string) []string {
	return slices.DeleteFunc(slices.Clone(packages), func(p string) bool {
		return !slices.ContainsFunc(forbiddenImports(), func(h string) bool { return strings.HasPrefix(p+"/", h+"/") })
	})
}

// packagesMax limits how many packages beside the standard library a test with the harness compiles. It is also in
// docs/testing.md.
const packagesMax = 170

func TestDependencies(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "github.com/tasard/tasard/actors") {
		t.Fatalf("go list names %d packages, and not those of the harness", len(packages))
	}
	if found := forbiddenIn(packages); len(found) > 0 {
		t.Errorf("an import of the harness builds %q too", found)
	}
	libraries := slices.DeleteFunc(packages, func(p string) bool { return !strings.Contains(strings.Split(p, "/")[0], ".") })
	if len(libraries) > packagesMax {
		t.Errorf("a test with the harness compiles %d packages beside the standard library, at most %d: which are new?", len(libraries), packagesMax)
	}
	planted := []string{"testing", "github.com/spf13/cobra", "github.com/tasard/tasard/collectors/source", "github.com/PuerkitoBio/goquery"}
	if got := forbiddenIn(append(planted, "net/http")); !slices.Equal(got, planted) {
		t.Errorf("%q, want %q", got, planted)
	}
}
