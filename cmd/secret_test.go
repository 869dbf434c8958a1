package cmd

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestSecret_Files wants one line out of a file that nobody else can read, and errors that never repeat it.
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
		{name: "group may read", text: word, mode: 0o640, why: "others may read or change this secret (mode 0640); do: chmod 600"},
		{name: "world may read", text: word, mode: 0o604, why: "mode 0604"},
		{name: "group may write", text: word, mode: 0o620, why: "mode 0620"},
		{name: "empty", text: "\n", mode: 0o600, why: "found nothing"},
		{name: "two lines", text: word + "\n" + word + "\n", mode: 0o600, why: "found several"},
		{name: "binary", text: word + "\x00", mode: 0o600, why: "control characters"},
		{name: "long", text: strings.Repeat("x", secretBytesMax+1), mode: 0o600, why: "more than 4096 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := dir + "/password"
			if err := errors.Join(os.WriteFile(path, []byte(test.text), 0o600), os.Chmod(path, test.mode)); err != nil {
				t.Fatal(err)
			}
			credentials := ""
			if test.credentials {
				credentials = dir + "/"
			}
			secret, err := readSecret(path, credentials)
			if test.why == "" {
				if err != nil || secret.Reveal() != test.want {
					t.Errorf("%q, %v", secret.Reveal(), err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.why) || !strings.HasPrefix(err.Error(), path) || strings.Contains(err.Error(), word) || exitCode(err) != exitBadData {
				t.Errorf("%v, want %q", err, test.why)
			}
		})
	}
}

// TestSecret_OpenToOthers wants a node not to start with such a file, and nothing to be made.
func TestSecret_OpenToOthers(t *testing.T) {
	password := writeFile(t, "password", mailPassword)
	if err := os.Chmod(password, 0o644); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir() + "/data"
	run(t, nil, nil, serveArgs(data, "--smtp-addr", "127.0.0.1:1", "--smtp-user", "x", "--smtp-password-file", password, "--mail-from", mailSender)...).fails(t, exitBadData, password, "chmod 600")
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data directory was touched: %v", err)
	}
}

func TestValues_Accounts(t *testing.T) {
	var o accountOptions
	proxies := prefixesValue(&o.proxies)
	for _, text := range []string{"10.0.0.0/8", "192.0.2.7, fd00::/8", "::1"} {
		if err := proxies.Set(text); err != nil {
			t.Error(err)
		}
	}
	if got := proxies.String(); got != "10.0.0.0/8,192.0.2.7/32,fd00::/8,::1/128" {
		t.Errorf("the proxies are %s", got)
	}
	for _, text := range []string{"", "x", "10.0.0.0", "10.0.0.1/8", "0.0.0.0/0", "::/0", "::ffff:10.0.0.0/104", "10.0.0.0/33", "10.0.0.0/8,", "fe80::1%eth0"} {
		if err := prefixesValue(&o.proxies).Set(text); (err == nil) != (text == "10.0.0.0") {
			t.Errorf("%q: %v", text, err)
		}
	}
	page := urlValue(&o.accountURL, urlBytesMax)
	for text, good := range map[string]bool{
		"https://example.com/keys#a": true, "http://example.com": true, "ftp://example.com": false, "/keys": false, "https://": false,
		"https://example.com/>; rel=x, <y": false, "https://example.com/\"": false, "https://example.com/\n": false, "https://example.com/\u00e9": false,
		"https://example.com/" + strings.Repeat("x", urlBytesMax): false,
	} {
		if err := page.Set(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
