package node

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node/acme"
	"github.com/tasard/tasard/node/metrics"
	"github.com/tasard/tasard/wal"
)

// TestSecret_Files wants one line of a file that only its owner and its group can read, and errors that never quote it.
func TestSecret_Files(t *testing.T) {
	const word = "pass word\u00e9="
	for _, test := range []struct {
		name, text  string
		mode        fs.FileMode
		credentials bool
		want, why   string
	}{
		{name: "plain", text: word, mode: 0o600, want: word},
		{name: "line break", text: word + "\n", mode: 0o400, want: word},
		{name: "foreign line break", text: word + "\r\n", mode: 0o600, want: word},
		{name: "handed over by the service manager", text: word, mode: 0o444, credentials: true, want: word},
		{name: "group may read, as a mounted secret", text: word, mode: 0o440, want: word},
		{name: "world may read", text: word, mode: 0o604, why: "other users can read or change this secret (mode 0604); run: chmod 640"},
		{name: "group may write", text: word, mode: 0o620, why: "mode 0620"},
		{name: "empty", text: "\n", mode: 0o600, why: "found nothing"},
		{name: "two lines", text: word + "\n" + word + "\n", mode: 0o600, why: "found several"},
		{name: "binary", text: word + "\x00", mode: 0o600, why: "control characters"},
		{name: "pipe", why: "want a regular file"},
		{name: "long", text: strings.Repeat("x", secretBytesMax+1), mode: 0o600, why: "more than 4096 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := dir + "/password"
			if test.name == "pipe" {
				must(t, syscall.Mkfifo(path, 0o600))
				_, err := ReadSecret(path, "")
				if err == nil || !strings.Contains(err.Error(), test.why) || checkSecretFile(path, "", "private key") == nil {
					t.Error(err)
				}
				return
			}
			must(t, errors.Join(os.WriteFile(path, []byte(test.text), 0o600), os.Chmod(path, test.mode)))
			credentials := ""
			if test.credentials {
				credentials = dir + "/"
			}
			secret, err := ReadSecret(path, credentials)
			if test.why == "" {
				if err != nil || secret.Reveal() != test.want {
					t.Errorf("%q, %v", secret.Reveal(), err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.why) || !strings.HasPrefix(err.Error(), path) || strings.Contains(err.Error(), word) {
				t.Errorf("%v, want %q", err, test.why)
			}
		})
	}
}

const testKey = "tcrd_0123456789abcdef"

func writeSecret(t *testing.T, directory, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(directory, name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	must(t, os.Chmod(path, mode))
}

// TestSourceSecrets_MissingDisables wants a source without its secret to be off and to say what it lacks, and a file
// that others can read to be refused.
func TestSourceSecrets_MissingDisables(t *testing.T) {
	directory := t.TempDir()
	writeSecret(t, directory, "tasareal", testKey+"\n", 0o600)
	writeSecret(t, directory, "popular-client-id", "client-of-popular", 0o600)
	c := Config{Collect: Collect{Secrets: directory}}
	secrets, err := c.ReadSourceSecrets(source.DefaultSet())
	must(t, err)
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

// TestOwner_RootLeavesNoFiles wants root not to change a directory whose files belong to another user, nor an empty one
// of another user: the files that it leaves there would keep the user's node from starting. Reading is allowed.
func TestOwner_RootLeavesNoFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files to other users")
	}
	const other = 65532
	empty, foreign, mounted := t.TempDir(), t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(foreign, "mark"), filepath.Join(mounted, "mark")} {
		must(t, os.WriteFile(path, nil, 0o600))
	}
	for _, path := range []string{empty, foreign, filepath.Join(foreign, "mark"), mounted} {
		must(t, os.Chown(path, other, other))
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
	must(t, os.Chmod(dir, 0o777|os.ModeSticky))
	if err := checkDir(dir); err != nil {
		t.Errorf("mode 1777: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "mark"), nil, 0o600))
	if err := checkSticky(dir, os.Geteuid()+1); os.Geteuid() != 0 && (err == nil || !strings.Contains(err.Error(), "mark")) {
		t.Errorf("the file of another user: %v", err)
	}
	must(t, os.Chmod(dir, 0o777))
	if err := checkDir(dir); err == nil || !strings.Contains(err.Error(), "mode 0777") {
		t.Errorf("mode 0777: %v", err)
	}
}

// TestDirectoryError_FullDisk: a full disk is reported as it is, without the advice to choose another directory.
func TestDirectoryError_FullDisk(t *testing.T) {
	full := fmt.Errorf("append: %w", wal.ErrNoSpace)
	if err := directoryError("data", full); err != full { //nolint:errorlint // it is returned as it is
		t.Error(err)
	}
}

func TestBackup_ItsTimeSurvivesARestart(t *testing.T) {
	at, dir := time.Unix(1e9, 0), t.TempDir()
	(&Node{config: Config{Dir: dir}}).storeLastBackup(at)
	n := &Node{config: Config{Dir: dir, Clock: func() time.Time { return at.Add(time.Hour) }}}
	var want metrics.Outcome
	want.Record(true, at)
	if n.readLastBackup(); !reflect.DeepEqual(&n.backups, &want) {
		t.Errorf("%+v, want %+v", &n.backups, &want)
	}
}

// TestProblems_OneAfterAnother: when a problem turns into another one, the log has its end.
func TestProblems_OneAfterAnother(t *testing.T) {
	var lines bytes.Buffer
	n, states := &Node{config: Config{Logger: slog.New(slog.NewTextHandler(&lines, nil))}}, map[string]string{}
	for _, state := range []string{"failing", "full"} {
		n.logCondition(states, engine.Condition{Name: "mail", State: state})
	}
	if want := `msg="problem ended" condition=mail state=failing`; !strings.Contains(lines.String(), want) {
		t.Errorf("no %s in\n%s", want, lines.String())
	}
}

// TestCertificate_Times: a certificate is reported before and after its time, and one that the node manages makes
// the node unavailable from its end on.
func TestCertificate_Times(t *testing.T) {
	now, from := time.Time{}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	to := from.AddDate(0, 3, 0)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"a.example"}, NotBefore: from, NotAfter: to}
	signed, err := x509.CreateCertificate(rand.Reader, leaf, leaf, key.Public(), key)
	must(t, err)
	text := slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
	dir := t.TempDir()
	must(t, errors.Join(os.Mkdir(filepath.Join(dir, "ca"), 0o700), os.WriteFile(filepath.Join(dir, "ca", "a.example.pem"), text, 0o600)))
	c := Config{Clock: func() time.Time { return now }}
	manager := &acme.Manager{Name: "a.example", Dir: dir, Authority: "https://ca", Clock: c.Clock}
	must(t, manager.Open())
	n := &Node{config: c, files: files{certificate: &certificate{manager: manager}}}
	if pair, err := (&certificate{manager: &acme.Manager{}}).getCertificate(nil); pair != nil || err == nil {
		t.Errorf("before the first certificate: %v, %v", pair, err)
	}
	for _, c := range []struct {
		at             time.Time
		problem, state string
	}{
		{from.Add(-1), "is not valid before", engine.ConditionOK}, {from, "", engine.ConditionOK}, {to.Add(-1), "", engine.ConditionOK},
		{to, "", "expired"}, {to.Add(1), "has expired on", "expired"},
	} {
		now = c.at
		problem, got := certificateProblem(leaf, now), n.certificateCondition()
		if (problem == "") != (c.problem == "") || !strings.Contains(problem, c.problem) || got.State != c.state || got.Down != (c.state == "expired") {
			t.Errorf("at %s: %q and %+v, want %q and %s", now, problem, got, c.problem, c.state)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
