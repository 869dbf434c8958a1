package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOwner_RootLeavesNoFiles wants root not to change a directory whose files belong to another user, nor an empty one
// of another user: the files that it leaves there would keep the user's node from starting. Reading is allowed.
func TestOwner_RootLeavesNoFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files to other users")
	}
	const other = 65532
	empty, foreign, mounted := t.TempDir(), t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(foreign, "mark"), filepath.Join(mounted, "mark")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{empty, foreign, filepath.Join(foreign, "mark"), mounted} {
		if err := os.Chown(path, other, other); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{empty, foreign} {
		err := CheckOwner(dir, true)
		if err == nil || !strings.Contains(err.Error(), "belongs to user 65532") || !strings.Contains(err.Error(), "chown -R root") {
			t.Errorf("%s: %v", dir, err)
		}
		if err := CheckOwner(dir, false); err != nil {
			t.Errorf("reading: %v", err)
		}
	}
	if err := CheckOwner(mounted, true); err != nil {
		t.Errorf("a directory of another user with a log of root: %v", err)
	}
	if err := CheckOwner(filepath.Join(empty, "new"), true); err != nil {
		t.Errorf("a new directory: %v", err)
	}
}

// TestOwner_StickyDirectory wants a mount for temporary data (mode 1777) to be accepted, unless it has files of
// others.
func TestOwner_StickyDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if err := checkDir(dir); err != nil {
		t.Errorf("mode 1777: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mark"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkSticky(dir, os.Geteuid()+1); os.Geteuid() != 0 && (err == nil || !strings.Contains(err.Error(), "mark")) {
		t.Errorf("the file of another user: %v", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := checkDir(dir); err == nil || !strings.Contains(err.Error(), "mode 0777") {
		t.Errorf("mode 0777: %v", err)
	}
}
