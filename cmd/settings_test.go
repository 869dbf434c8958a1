package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/setting"
)

// TestSettings_SameWords wants every setting to refuse the same text with the same words, whichever way it comes.
func TestSettings_SameWords(t *testing.T) {
	for _, name := range []string{"listen", "log-format", "log-level", "strict", "no-collect", "fee-notice", "data", "limits", "quota-day",
		"quota-minute", "lease", "mail", "smtp-addr", "smtp-tls", "smtp-user", "mail-from", "trusted-proxy", "account-url"} {
		value, written := "\x01", `"\u0001"`
		if name == "data" {
			value, written = "", "''"
		}
		flag := run(t, nil, nil, "config", "show", "--"+name+"="+value)
		flag.fails(t, exit.Usage, ": --"+name+": ")
		_, why, _ := strings.Cut(flag.stderr, "--"+name+": ")
		run(t, []string{setting.Variable(name) + "=" + value}, nil, "config", "show").fails(t, exit.BadData, setting.Variable(name)+": "+why)
		file := writeFile(t, "t.toml", name+" = "+written+"\n")
		run(t, nil, nil, "config", "show", "--config", file).fails(t, exit.BadData, file+":1: "+name+": "+why)
	}
}

func TestSettings_EveryFlagIsOneOrIsDeclaredAsNone(t *testing.T) {
	ofOneCall := "at break buy by channel config currency data day dir effective-date expires for format from help json kind live minute network output page required-at " +
		"reason refused save saved sell show since source to version what withdraw yes" // data: of demo, which must not take the one of serve
	settings := setting.Names((&commands{&process.Process{}}).newRoot())
	for _, command := range everyCommand((&commands{&process.Process{}}).newRoot()) {
		for _, usage := range strings.Split(command.LocalFlags().FlagUsages(), "\n") {
			_, name, found := strings.Cut(usage, "--")
			if !found {
				continue
			}
			name, _, _ = strings.Cut(name, " ")
			if flag := command.Flags().Lookup(name); !setting.IsSetting(flag) && !strings.Contains(ofOneCall, name) {
				t.Errorf("%s --%s has no variable", command.CommandPath(), name)
			}
		}
	}
	if len(settings) < 10 {
		t.Errorf("only the settings %q", settings)
	}
}

// TestSettings_EveryCommandRefuses wants unknown variables, and bad values of settings, refused by every command,
// also by those that have no such flag.
func TestSettings_EveryCommandRefuses(t *testing.T) {
	data := importedData(t, observation(1, "59", "60"))
	config := writeFile(t, "tasard.toml", "step = 'soon'\n")
	for _, command := range []string{
		"serve --listen 127.0.0.1:0 --data DIR", "demo --listen 127.0.0.1:0", "import o.csv --data DIR", "export --data DIR", "log verify --data DIR",
		"log dump --data DIR", "log repair --data DIR", "log", "version", "--version",
	} {
		for variable, want := range map[string]string{
			"TASARD_LISTN=:1":           "TASARD_LISTN: unknown variable (did you mean TASARD_LISTEN?)",
			"TASARD_LOG_LEVEL=loud":     `TASARD_LOG_LEVEL: "loud": want one of`,
			"TASARD_STEP=soon":          `TASARD_STEP: "soon": want a duration`,
			"TASARD_CONFIG=" + config:   config + ":1: step: ",
			"TASARD_CONFIG=/dev/null/x": "configuration",
		} {
			run(t, []string{variable}, nil, commandIn(data, command)...).fails(t, exit.BadData, want)
		}
	}
	if got := run(t, []string{"TASARD_LISTEN=:1", "TASARD_STEP=9s"}, nil, "version"); got.code != exit.OK {
		t.Errorf("good variables: exit code %d, %s", got.code, got.stderr)
	}
}

// commentedForm is a setting of packaging/tasard.toml that is shown and not made; one with a blank is a sentence.
const commentedForm = `(?m)^#([a-z][a-z-]* = )`

// TestPackaging_SettingsFile wants the files of the package and of the image to be such that serve takes them, the
// first as it is and with everything that it shows. A container without further settings answers outside itself.
func TestPackaging_SettingsFile(t *testing.T) {
	const path = "packaging/tasard.toml"
	whole := writeFile(t, "tasard.toml", regexp.MustCompile(commentedForm).ReplaceAllString(readFile(t, path), "$1"))
	for file, want := range map[string][2]string{
		path: {"admin-socket", "/run/tasard/admin.sock"}, whole: {"admin-socket", "/run/tasard/admin.sock"},
		"packaging/image/tasard.toml": {"listen", ":8080"},
	} {
		by := shownConfig(t, nil, "--config", file)
		if got := by[want[0]].Value; got != want[1] || by["data"].Value != "/var/lib/tasard" {
			t.Errorf("%s: %s is %q, data %q", file, want[0], got, by["data"].Value)
		}
	}
}

// TestPackaging_SettingsFileIsWhole wants every setting of serve in the file, with its default unless it is an
// example.
func TestPackaging_SettingsFileIsWhole(t *testing.T) {
	text := readFile(t, "packaging/tasard.toml")
	root := (&commands{&process.Process{}}).newRoot()
	shown, err := setting.ParseConfig("packaging/tasard.toml", regexp.MustCompile(commentedForm).ReplaceAllString(text, "$1"), setting.Names(root))
	if err != nil {
		t.Fatal(err)
	}
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	serve.Flags().VisitAll(func(flag *pflag.Flag) {
		if !setting.IsSetting(flag) {
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

// shownSettings are the settings that config show prints as JSON, by name.
func shownConfig(t *testing.T, environ []string, args ...string) map[string]resolvedSetting {
	t.Helper()
	got := run(t, environ, nil, append([]string{"config", "show", "--format", "json"}, args...)...)
	if got.code != exit.OK {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	answer := asJSON[struct{ Settings []resolvedSetting }](t, got.stdout)
	by := map[string]resolvedSetting{}
	for _, one := range answer.Settings {
		by[one.Name] = one
	}
	return by
}

// TestConfig_ShowTellsWhereFrom wants the flag before the variable before the file, each named, and the rest as
// defaults. The file of the flag is read, not that of the variable; settings of other commands may be among the
// others.
func TestConfig_ShowTellsWhereFrom(t *testing.T) {
	file := writeFile(t, "tasard.toml", "listen = ':1'\nlog-level = 'warn'\n\nquota-day = 7\nno-collect = true\nstrict = false\nseed = 7\n")
	variables := []string{"PATH=x", "TASARD_LISTEN=:2", "TASARD_LOG_LEVEL=error", "TASARD_STEP=9s", "TASARD_CONFIG=" + file}
	by := shownConfig(t, variables, "--listen", ":3")
	for name, want := range map[string]resolvedSetting{
		"listen":       {Value: ":3", From: "--listen", Set: true},
		"log-level":    {Value: "error", From: "TASARD_LOG_LEVEL", Set: true},
		"quota-day":    {Value: "7", From: file + ":4", Set: true},
		"no-collect":   {Value: "true", From: file + ":5", Set: true},
		"strict":       {Value: "off", From: file + ":6", Set: true},
		"quota-minute": {Value: "60", From: "default"},
		"catalogue":    {From: "default"},
	} {
		want.Name = name
		if by[name] != want {
			t.Errorf("%+v, want %+v", by[name], want)
		}
	}
	if other := shownConfig(t, variables, "--config", writeFile(t, "other.toml", "quota-day = 8\n"))["quota-day"]; other.Value != "8" {
		t.Errorf("--config names another file, and quota-day is %+v", other)
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

// TestConfig_ShowsNoSecret wants the names of secret files to be shown, without their contents, and addresses
// without passwords.
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

// TestConfig_CheckIsContent wants a valid configuration to be accepted without a change on the disk; the golden file of
// bad input has a bad one.
func TestConfig_CheckIsContent(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if text := mustRun(t, "config", "check", "--data", data, "--listen", "127.0.0.1:0"); text != "The configuration is valid: 2 settings set, the others have their defaults.\n" {
		t.Errorf("%q", text)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the data directory was made")
	}
}

// TestConfig_CheckListsAll wants every problem, and none that comes only from another one: a value that is wrong, a
// name that is nearly right and a file that can't be read leave values unknown, and nothing is said about these.
func TestConfig_CheckListsAll(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		args string
		want []string // part of each line
	}{
		"lists":    {"data = '/tmp/x'\ntrusted-proxy = ['10.0.0.0/8', 'fd00::/8']\ncluster-members = []", "", nil},
		"no lists": {"data = '/tmp/x'\nlog-level = ['info']\nquota-day = [1]", "", []string{":2: log-level: want one value, found a list", ":3: quota-day: want a text"}},
		"name":     {"dta = '/tmp/x'", "", []string{":1: unknown key"}},
		"data":     {"data = 5.5", "", []string{":1: data: want a text"}},
		"syntax":   {"data = ", "", []string{":1: "}},
		"values":   {"data = '/tmp/x'\nlisten = 'x'\nlog-level = 'y'", "", []string{":3: log-level", ":2: listen"}},
		"mail":     {"data = '/tmp/x'\nmail = 'smtp'\nsmtp-addr = 'x'\nmail-from = 'y'", "", []string{":4: mail-from", ":3: smtp-addr"}},
		"login":    {"data = '/tmp/x'\nsmtp-addr = 'x:1'\nmail-from = 'a@example.com'\nsmtp-user = ''\nsmtp-password-file = 'p'", "", []string{":4: smtp-user"}},
		"cluster":  {"data = '/tmp/x'\ncluster-name = 'c'\ncluster-node = 'one'", "--cluster c --cluster-members 1=10.0.0.1:1", []string{":2: unknown key", ":3: cluster-node"}},
		"independent": {"listen = 'x'", "--data d --cluster c --catalogue /n --tls-cert /n --smtp-addr x:1 --mail-from a@example.com --smtp-ca-file /n --admin-socket /n/s --metrics-listen 203.0.113.1:1", []string{
			":1: listen", "--cluster-node: missing", "--cluster-members: missing", "--catalogue: ", "--tls-cert and --tls-key: ", "--smtp-ca-file: ", "--admin-socket: ", "--metrics-listen: ",
		}},
	} {
		args := append([]string{"config", "check", "--config", writeFile(t, "t.toml", tt.file+"\n")}, strings.Fields(tt.args)...)
		if !strings.Contains(tt.file, "listen") {
			args = append(args, "--listen", "127.0.0.1:0")
		}
		got := run(t, nil, nil, args...)
		lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
		if len(tt.want) == 0 && got.code == exit.OK {
			continue
		}
		if got.code != exit.BadData || len(lines) != len(tt.want) {
			t.Errorf("%s: exit code %d, want the problems %q:\n%s", name, got.code, tt.want, got.stderr)
			continue
		}
		contains(t, got.stderr, tt.want...)
	}
}

// TestServe_FewOpenFiles wants a node to say how many it needs.
func TestServe_FewOpenFiles(t *testing.T) {
	t.Parallel()
	const script = `ulimit -n 64 && exec "$0" "$@"`
	cmd := exec.Command("sh", append([]string{"-c", script, os.Args[0]}, serveArgs(t.TempDir())...)...)
	cmd.Env = append(os.Environ(), asProgram+"=now")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exit.BadData {
		t.Errorf("exit code %d", code)
	}
	oneLine(t, string(out), "the limit of open files is 64: a node needs at least 288, and 16640 for 16384 connections; raise it (LimitNOFILE, ulimit -n)")
}
