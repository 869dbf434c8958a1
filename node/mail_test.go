package node

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
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
		{name: "handed over by the service manager", text: word, mode: 0o440, credentials: true, want: word},
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
				if err := syscall.Mkfifo(path, 0o600); err != nil {
					t.Fatal(err)
				}
				_, err := ReadSecret(path, "")
				if err == nil || !strings.Contains(err.Error(), test.why) || checkKeyFile(path, "", "") == nil {
					t.Error(err)
				}
				return
			}
			if err := errors.Join(os.WriteFile(path, []byte(test.text), 0o600), os.Chmod(path, test.mode)); err != nil {
				t.Fatal(err)
			}
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
