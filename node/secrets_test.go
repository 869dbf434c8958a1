package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
)

const testKey = "tcrd_0123456789abcdef"

func writeSecret(t *testing.T, directory, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(directory, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// TestSourceSecrets_MissingDisables wants a source without its secret to be off and to say what it lacks, and a file
// that others can read to be refused.
func TestSourceSecrets_MissingDisables(t *testing.T) {
	directory := t.TempDir()
	writeSecret(t, directory, "tasareal", testKey+"\n", 0o600)
	writeSecret(t, directory, "popular-client-id", "client-of-popular", 0o600)
	c := Config{Collect: Collect{Secrets: directory}}
	secrets, err := c.ReadSourceSecrets(source.DefaultSet())
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%v %+v %#v", secrets, secrets, secrets); strings.Contains(text, testKey) {
		t.Errorf("printed as %s", text)
	}
	set := secrets.Apply(source.DefaultSet())
	for id, want := range map[string]string{
		"tasareal": "", "bhd-site": "", "popular-api": "It needs the secret popular-client-secret", "indexa": "Old: last seen",
	} {
		if d, _ := set.Find(id); !strings.HasPrefix(d.Disabled, want) || want == "" && d.Disabled != "" {
			t.Errorf("%s is disabled: %q, want %q", id, d.Disabled, want)
		}
	}
	writeSecret(t, directory, "indexa", "key-of-indexa", 0o644)
	if _, err := c.ReadSourceSecrets(source.DefaultSet()); err == nil || !strings.Contains(err.Error(), "chmod 640") || strings.Contains(err.Error(), "key-of") {
		t.Errorf("a file for all eyes: %v", err)
	}
	c.Collect.Secrets = filepath.Join(directory, "tasareal")
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "Collect.Secrets") {
		t.Errorf("a file as directory: %v", err)
	}
}
