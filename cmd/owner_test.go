package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// TestImport_RootDoesNotTakeADirectory wants an import by root into the directory of another user to be refused with a
// message that says how to go on, and to leave no file.
func TestImport_RootDoesNotTakeADirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give the directory to another user")
	}
	data := t.TempDir()
	noError(t, os.Chown(data, 65532, 65532))
	run(t, nil, nil, "import", "--data", data, observationsFile(t, observation(1, "58", "61"))).fails(t, exit.BadData, "belongs to user 65532", "chown")
	if entries, err := os.ReadDir(data); err != nil || len(entries) > 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}

// TestOwner_RootRepairsAndRestoresNothing wants root to change no log of another user, by a repair or a restore.
func TestOwner_RootRepairsAndRestoresNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give the directory to another user")
	}
	data, empty, backup := filledLog(t), t.TempDir(), filepath.Join(t.TempDir(), "b.zst")
	mustRun(t, "backup", "--data", importedData(t, observation(1, "59", "60")), "--to", backup)
	segment := segmentOf(t, data)
	content := []byte(readFile(t, segment))
	content[len(content)/2] ^= 1
	noError(t, os.WriteFile(segment, content, 0o600))
	for _, path := range append(filesOf(t, data), data, empty) {
		noError(t, os.Chown(path, 65532, 65532))
	}
	before := fingerprint(t, data)
	run(t, nil, nil, "log", "repair", "--data", data, "--yes").fails(t, exit.BadData, "belongs to user 65532", "chown")
	run(t, nil, nil, "restore", "--data", empty, "--from", backup).fails(t, exit.BadData, "belongs to user 65532", "chown")
	if fingerprint(t, data) != before || len(filesOf(t, empty)) > 0 {
		t.Error("files were changed")
	}
	run(t, nil, nil, "log", "repair", "--data", data).fails(t, exit.BadData, "is damaged at offset ") // reading is allowed
}

func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*")
	noError(t, err)
	return files
}

// TestCommands_LongDataPath wants commands that need no node to work although the path is too long for a socket.
func TestCommands_LongDataPath(t *testing.T) {
	data := filepath.Join(t.TempDir(), strings.Repeat("a", 80), strings.Repeat("b", 80))
	mustRun(t, "import", "--data", data, observationsFile(t, observation(1, "58", "61")))
	contains(t, mustRun(t, "export", "--data", data), "popular")
	contains(t, mustRun(t, "sources", "list", "--data", data), "No node is running")
	run(t, nil, nil, "admin", "accounts", "list", "--data", data).fails(t, exit.Unavailable, "no node listens on")
}

// TestImport_AllQuarantined wants a file of which nothing is published not to look like a success.
func TestImport_AllQuarantined(t *testing.T) {
	got := run(t, nil, nil, "import", "--data", t.TempDir(), observationsFile(t, observation(1, "5800", "6100")))
	if got.code != exit.Rejected || !strings.Contains(got.stderr, "nothing was published: every line was quarantined") {
		t.Errorf("exit code %d\n%s", got.code, got.stderr)
	}
}

// TestImport_SaysWhatIsNotNew wants the summary to say what accepted lines are that are not new.
func TestImport_SaysWhatIsNotNew(t *testing.T) {
	data, file := t.TempDir(), observationsFile(t, observation(1, "58", "61"), observation(2, "58", "61"))
	contains(t, mustRun(t, "import", "--data", data, file), "2 accepted (1 new), 0 quarantined, 0 refused, 0 malformed; 1 of the accepted repeat a known value")
}

// TestSettings_PasswordIsNotEchoed wants no message to show the password of an address, however broken the address is.
func TestSettings_PasswordIsNotEchoed(t *testing.T) {
	for _, url := range []string{"https://ana:hunter2@example.com", "https://ana:hunter2@example.com:port", "https://ana:hunter2@[::1", "://ana:hunter2@x"} {
		got := run(t, nil, nil, "serve", "--data", t.TempDir(), "--public-url", url)
		if got.code != exit.Usage || strings.Contains(got.stderr, "hunter2") {
			t.Errorf("%s: %d, %s", url, got.code, got.stderr)
		}
	}
}
