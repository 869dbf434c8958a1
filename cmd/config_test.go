package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// shownSettings are the settings that config show prints as JSON, by name.
func shownConfig(t *testing.T, environ []string, args ...string) map[string]shownSetting {
	t.Helper()
	got := run(t, environ, nil, append([]string{"config", "show", "--format", "json"}, args...)...)
	if got.code != exit.Done {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	var answer struct{ Settings []shownSetting }
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil {
		t.Fatal(err)
	}
	by := map[string]shownSetting{}
	for _, one := range answer.Settings {
		by[one.Name] = one
	}
	return by
}

// TestConfig_ShowTellsWhereFrom wants the flag before the variable before the file, each named, and the rest as defaults.
func TestConfig_ShowTellsWhereFrom(t *testing.T) {
	file := writeFile(t, "tasard.toml", "listen = ':1'\nlog-level = 'warn'\n\nquota-day = 7\n")
	by := shownConfig(t, []string{"TASARD_LISTEN=:2", "TASARD_LOG_LEVEL=error", "TASARD_CONFIG=" + file}, "--listen", ":3")
	for name, want := range map[string]shownSetting{
		"listen":       {Value: ":3", From: "--listen", Set: true},
		"log-level":    {Value: "error", From: "TASARD_LOG_LEVEL", Set: true},
		"quota-day":    {Value: "7", From: file + ":4", Set: true},
		"quota-minute": {Value: "60", From: "default"},
		"catalogue":    {From: "default"},
	} {
		want.Name = name
		if by[name] != want {
			t.Errorf("%+v, want %+v", by[name], want)
		}
	}
	for name := range by {
		if name == "break" || name == "format" || name == "config" {
			t.Errorf("%s is no setting of serve", name)
		}
	}
}

// TestConfig_ShowAsFile wants the TOML to say the same when it is read again, whatever signs are in the values.
func TestConfig_ShowAsFile(t *testing.T) {
	args := []string{
		"--fee-notice", `Sin "cargos" \ ñ #1`, "--trusted-proxy", "10.0.0.0/8,fd00::/8", "--strict=off", "--no-collect", "--drain-delay", "1m30s",
		"--data", "/var/lib/a b",
	}
	text := mustRun(t, append([]string{"config", "show", "--format", "toml"}, args...)...)
	want, got := shownConfig(t, nil, args...), shownConfig(t, nil, "--config", writeFile(t, "again.toml", text))
	for name, one := range want {
		if got[name].Value != one.Value {
			t.Errorf("%s: %q, want %q, in\n%s", name, got[name].Value, one.Value, text)
		}
		if one.Value != "" && !strings.HasPrefix(got[name].From, "/") {
			t.Errorf("%s is not in the file, but from %s", name, got[name].From)
		}
	}
}

// TestConfig_ShowsNoSecret wants the names of secret files shown and nothing of what is in them, and no password of an address.
func TestConfig_ShowsNoSecret(t *testing.T) {
	file := writeFile(t, "password", "hunter2\n")
	for _, format := range []string{"text", "toml", "json"} {
		text := mustRun(t, "config", "show", "--format", format, "--smtp-password-file", file, "--account-url", "https://ana:hunter2@example.com/keys")
		if strings.Contains(text, "hunter2") || strings.Contains(text, "ana") || !strings.Contains(text, file) || !strings.Contains(text, "REDACTED@example.com/keys") {
			t.Errorf("%s:\n%s", format, text)
		}
		if format == "toml" && !strings.Contains(text, "\n# account-url") {
			t.Errorf("an address without its password would be read again:\n%s", text)
		}
	}
}

// TestConfig_CheckTellsAll wants every problem at once, one a line, with 78, and a good configuration to be called so. Nothing is touched.
func TestConfig_CheckTellsAll(t *testing.T) {
	directory := t.TempDir()
	data, password := filepath.Join(directory, "data"), writeFile(t, "password", "hunter2\n")
	if err := os.Chmod(password, 0o644); err != nil {
		t.Fatal(err)
	}
	got := run(t, []string{"TASARD_LISTN=:1", "TASARD_QUOTA_DAY=0"}, nil, "config", "check", "--config", writeFile(t, "t.toml", "lease = 'x'\nbogus = 1\n"),
		"--catalogue", directory+"/none.json", "--sources", directory+"/none", "--tls-cert", directory+"/c.pem", "--tls-key", directory+"/k.pem",
		"--import", directory+"/none.csv", "--listen", "203.0.113.1:80", "--smtp-addr", "mail.example.com:25", "--mail-from", "a@example.com",
		"--smtp-user", "a", "--smtp-password-file", password)
	if got.code != exit.BadData || got.stdout != "" {
		t.Errorf("exit code %d, %s", got.code, got.stdout)
	}
	for _, part := range []string{
		"TASARD_LISTN: unknown variable", "TASARD_QUOTA_DAY: ", "t.toml:2: unknown key", "no data directory", "none.json: there is no such catalogue",
		"none: want a directory of definitions", "k.pem: there is no such file", "none.csv: there is no such file", "listen on 203.0.113.1:80",
		"password: others may read",
	} {
		if strings.Count(got.stderr, part) != 1 {
			t.Errorf("%q is not told once in\n%s", part, got.stderr)
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(got.stderr), "\n") {
		if !strings.HasPrefix(line, "tasard: ") {
			t.Errorf("not a line of its own: %q", line)
		}
	}
	if text := mustRun(t, "config", "check", "--data", data, "--listen", "127.0.0.1:0"); text != "The configuration is good: 2 settings set, the others have their defaults.\n" {
		t.Errorf("%q", text)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the data directory was made")
	}
}
