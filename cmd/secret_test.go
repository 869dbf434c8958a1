package cmd

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// TestSecret_OpenToOthers wants a node not to start with such a file, and nothing to be made.
func TestSecret_OpenToOthers(t *testing.T) {
	password := writeFile(t, "password", mailPassword)
	if err := os.Chmod(password, 0o644); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir() + "/data"
	run(t, nil, nil, serveArgs(data, "--smtp-addr", "127.0.0.1:1", "--smtp-user", "x", "--smtp-password-file", password, "--mail-from", mailSender)...).fails(t, exit.BadData, password, "chmod 600")
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data directory was touched: %v", err)
	}
}
