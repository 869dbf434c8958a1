package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/setting"
)

// settledWith are the settings of serve after the command line, the variables and the file have had their say.
func settledWith(t *testing.T, args, environ []string) (map[string]string, error) {
	t.Helper()
	p := &commands{&process.Process{Args: append([]string{"serve"}, args...), Environ: environ}}
	root := p.newRoot()
	values := map[string]string{}
	for _, command := range root.Commands() {
		if command.Name() == "serve" {
			command.RunE = p.settledInto(values)
		}
	}
	return values, root.ExecuteContext(t.Context())
}

// settledInto is a command that only tells its settings.
func (p *commands) settledInto(values map[string]string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if err := setting.Settle(cmd, p.Environ); err != nil {
			return err
		}
		if err := setting.NeedData(cmd); err != nil {
			return err
		}
		for _, name := range setting.All(cmd.Root()) {
			if flag := cmd.Flags().Lookup(name); flag != nil {
				values[name] = flag.Value.String()
			}
		}
		return nil
	}
}

func TestSettings_Precedence(t *testing.T) {
	file := writeFile(t, "tasard.toml", "data = 'file'\nlisten = ':3'\nlog-level = \"debug\"\nno-collect = true\nstrict = false\nseed = 7\n")
	variables := []string{"PATH=x", "TASARD_CONFIG=" + file, "TASARD_LISTEN=:2", "TASARD_LOG_LEVEL=warn", "TASARD_STEP=9s"}
	values, err := settledWith(t, []string{"--listen", ":1"}, variables)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"listen": ":1", "log-level": "warn", "data": "file", "no-collect": "true", "strict": "off", "log-format": "auto",
	}
	for name, text := range want {
		if values[name] != text {
			t.Errorf("%s is %q, want %q", name, values[name], text)
		}
	}
}

func TestSettings_FileOfTheFlagWins(t *testing.T) {
	one, two := writeFile(t, "1.toml", "data = 'one'\n"), writeFile(t, "2.toml", "data = 'two'\n")
	values, err := settledWith(t, []string{"--config", one}, []string{"TASARD_CONFIG=" + two})
	if err != nil || values["data"] != "one" {
		t.Errorf("data is %q, %v; want one", values["data"], err)
	}
}

// TestSettings_SameWords wants every setting to refuse the same text with the same words, whichever way it comes.
func TestSettings_SameWords(t *testing.T) {
	for _, name := range []string{"listen", "log-format", "log-level", "strict", "no-collect", "fee-notice", "data", "limits", "quota-day",
		"quota-minute", "lease", "mail", "smtp-addr", "smtp-tls", "smtp-user", "mail-from", "trusted-proxy", "account-url"} {
		_, flagErr := settledWith(t, []string{"--" + name + "=\x01"}, nil)
		_, variableErr := settledWith(t, nil, []string{setting.Variable(name) + "=\x01"})
		_, fileErr := settledWith(t, []string{"--config", writeFile(t, "t.toml", name+" = \"\\u0001\"\n")}, nil)
		if name == "data" {
			_, flagErr = settledWith(t, []string{"--data="}, nil)
			_, variableErr = settledWith(t, nil, []string{"TASARD_DATA="})
			_, fileErr = settledWith(t, []string{"--config", writeFile(t, "t.toml", "data = ''\n")}, nil)
		}
		if flagErr == nil || variableErr == nil || fileErr == nil {
			t.Errorf("%s takes a bad value: %v, %v, %v", name, flagErr, variableErr, fileErr)
			continue
		}
		_, why, _ := strings.Cut(flagErr.Error(), ": ")
		for _, err := range []error{variableErr, fileErr} {
			if !strings.HasSuffix(err.Error(), ": "+why) || exit.Code(err) != exit.BadData {
				t.Errorf("%s: %v (exit code %d), but the flag says %q", name, err, exit.Code(err), why)
			}
		}
	}
}

func TestSettings_EveryFlagIsOneOrIsDeclaredAsNone(t *testing.T) {
	ofOneCall := "at break buy by channel config currency data day dir effective-date expires for format from help json kind live minute network output page required-at " +
		"reason refused saved sell show source to version what withdraw yes" // data: of demo, which must not take the one of serve
	settings := setting.All((&commands{&process.Process{}}).newRoot())
	for _, command := range everyCommand((&commands{&process.Process{}}).newRoot()) {
		for _, usage := range strings.Split(command.LocalFlags().FlagUsages(), "\n") {
			_, name, found := strings.Cut(usage, "--")
			if !found {
				continue
			}
			name, _, _ = strings.Cut(name, " ")
			if flag := command.Flags().Lookup(name); !setting.Marked(flag) && !strings.Contains(ofOneCall, name) {
				t.Errorf("%s --%s has no variable", command.CommandPath(), name)
			}
		}
	}
	if len(settings) < 10 {
		t.Errorf("only the settings %q", settings)
	}
}

// TestSettings_EveryCommandRefuses wants unknown variables, and bad values of settings, refused by every command, also by
// those that have no such flag.
func TestSettings_EveryCommandRefuses(t *testing.T) {
	data := importedData(t, observation(1, "59", "60"))
	config := writeFile(t, "tasard.toml", "step = 'soon'\n")
	for _, command := range []string{
		"serve --listen 127.0.0.1:0 --data DIR", "demo --listen 127.0.0.1:0", "import o.csv --data DIR", "export --data DIR", "log verify --data DIR",
		"log dump --data DIR", "log repair --data DIR", "log", "version", "--version",
	} {
		for variable, want := range map[string]string{
			"TASARD_LISTN=:1":           "TASARD_LISTN: unknown variable (did you mean TASARD_LISTEN?)",
			"TASARD_LOG_LEVEL=loud":     `TASARD_LOG_LEVEL: "loud" is none of`,
			"TASARD_STEP=soon":          `TASARD_STEP: "soon" is no span of time`,
			"TASARD_CONFIG=" + config:   config + ":1: step: ",
			"TASARD_CONFIG=/dev/null/x": "configuration",
		} {
			run(t, []string{variable}, nil, commandIn(data, command)...).fails(t, exit.BadData, want)
		}
	}
	if got := run(t, []string{"TASARD_LISTEN=:1", "TASARD_STEP=9s"}, nil, "version"); got.code != exit.Done {
		t.Errorf("good variables: exit code %d, %s", got.code, got.stderr)
	}
}

func TestVersion_Flag(t *testing.T) {
	if got, want := mustRun(t, "--version"), mustRun(t, "version"); got != want || got == "" {
		t.Errorf("--version says %q, version %q", got, want)
	}
}

// commentedForm is a setting of packaging/tasard.toml that is shown and not made; one with a blank is a sentence.
const commentedForm = `(?m)^#([a-z][a-z-]* = )`

// TestPackaging_SettingsFile wants the file of the package to be one that serve takes, as it is and with everything that it shows.
func TestPackaging_SettingsFile(t *testing.T) {
	const path = "packaging/tasard.toml"
	values, err := settledWith(t, []string{"--config", path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if values["data"] != "/var/lib/tasard" || values["admin-socket"] != "/run/tasard/admin.sock" {
		t.Errorf("as it is: data %q, admin-socket %q", values["data"], values["admin-socket"])
	}
	whole := regexp.MustCompile(commentedForm).ReplaceAllString(readFile(t, path), "$1")
	if _, err := settledWith(t, []string{"--config", writeFile(t, "tasard.toml", whole)}, nil); err != nil {
		t.Errorf("with everything that it shows: %v", err)
	}
}

// TestPackaging_SettingsFileIsWhole wants every setting of serve in the file, with its default where it is no example.
func TestPackaging_SettingsFileIsWhole(t *testing.T) {
	text := readFile(t, "packaging/tasard.toml")
	root := (&commands{&process.Process{}}).newRoot()
	shown, err := setting.Parse("packaging/tasard.toml", regexp.MustCompile(commentedForm).ReplaceAllString(text, "$1"), setting.All(root))
	if err != nil {
		t.Fatal(err)
	}
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	serve.Flags().VisitAll(func(flag *pflag.Flag) {
		if !setting.Marked(flag) {
			return
		}
		line, found := shown[flag.Name]
		if !found {
			t.Errorf("packaging/tasard.toml does not tell %s; show it as a comment, with its default", flag.Name)
			return
		}
		if isExample(text, line.Number) {
			return
		}
		other := (&commands{&process.Process{}}).newServe().Flags().Lookup(flag.Name)
		if err := other.Value.Set(line.Text); err != nil || other.Value.String() != flag.DefValue {
			t.Errorf("packaging/tasard.toml:%d: %s is %q, %v; the default is %q", line.Number, flag.Name, line.Text, err, flag.DefValue)
		}
	})
}

// isExample tells whether a line shows an example and no default: it is active, or the comment above it says so.
func isExample(text string, number int) bool {
	lines := strings.Split(text, "\n")
	if !strings.HasPrefix(lines[number-1], "#") {
		return true
	}
	for i := number - 2; i >= 0 && strings.HasPrefix(lines[i], "#"); i-- {
		if strings.Contains(strings.ToLower(lines[i]), "example") {
			return true
		}
	}
	return false
}

// TestPackaging_ImageSettings wants a container without further settings to answer outside itself.
func TestPackaging_ImageSettings(t *testing.T) {
	values, err := settledWith(t, []string{"--config", "packaging/image/tasard.toml"}, nil)
	if err != nil || values["data"] != "/var/lib/tasard" || values["listen"] != ":8080" {
		t.Errorf("%v: %v", err, values)
	}
}

// shownSettings are the settings that config show prints as JSON, by name.
func shownConfig(t *testing.T, environ []string, args ...string) map[string]shownSetting {
	t.Helper()
	got := run(t, environ, nil, append([]string{"config", "show", "--format", "json"}, args...)...)
	if got.code != exit.Done {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	answer := asJSON[struct{ Settings []shownSetting }](t, got.stdout)
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
