package cmd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
)

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
			"TASARD_CONFIG=/dev/zero":   "read configuration: /dev/zero: the file is longer than 1048576 bytes; shorten it",
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
	for file, want := range map[string]map[string]string{
		path: {"admin-socket": "/run/tasard/admin.sock"}, whole: {"admin-socket": "/run/tasard/admin.sock"},
		"packaging/image/tasard.toml": {"listen": ":8080"},
	} {
		values := settingsOf(t, nil, "--config", file)
		for name, value := range want {
			if values[name] != value || values["data"] != "/var/lib/tasard" {
				t.Errorf("%s: %s is %q, data %q", file, name, values[name], values["data"])
			}
		}
	}
}

// settingsOf returns the values of the settings of serve, by name, that are not the defaults.
func settingsOf(t *testing.T, environ []string, args ...string) map[string]string {
	t.Helper()
	p := &process.Process{Environ: environ}
	cmd := (&commands{p}).newServe()
	root := (&commands{p}).newRoot()
	root.AddCommand(cmd)
	noError(t, errors.Join(cmd.Flags().Parse(args), command.Resolve(cmd, environ)))
	values := map[string]string{}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if command.IsSetting(flag) && flag.Changed {
			values[flag.Name] = flag.Value.String()
		}
	})
	return values
}

// TestPackaging_SettingsFileIsWhole wants every setting of serve in the file, with its default unless it is an
// example.
func TestPackaging_SettingsFileIsWhole(t *testing.T) {
	text := readFile(t, "packaging/tasard.toml")
	root := (&commands{&process.Process{}}).newRoot()
	shown, err := command.ParseConfig("packaging/tasard.toml", regexp.MustCompile(commentedForm).ReplaceAllString(text, "$1"), command.Names(root))
	noError(t, err)
	serve, _, err := root.Find([]string{"serve"})
	noError(t, err)
	serve.Flags().VisitAll(func(flag *pflag.Flag) {
		if !command.IsSetting(flag) {
			return
		}
		line, found := shown[flag.Name]
		if !found {
			t.Errorf("packaging/tasard.toml does not tell %s; show it as a comment, with its default", flag.Name)
			return
		}
		if isExample(text, line.Line) {
			return
		}
		other := (&commands{&process.Process{}}).newServe().Flags().Lookup(flag.Name)
		if err := other.Value.Set(line.Text); err != nil || other.Value.String() != flag.DefValue {
			t.Errorf("packaging/tasard.toml:%d: %s is %q, %v; the default is %q", line.Line, flag.Name, line.Text, err, flag.DefValue)
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

// TestSettings_Precedence wants the flag before the variable before the file. The file of the flag is read, not that of
// the variable; settings of other commands may be among the others. An empty variable counts as not set.
func TestSettings_Precedence(t *testing.T) {
	file := writeFile(t, "tasard.toml", "listen = ':1'\nlog-level = 'warn'\n\nquota-day = 7\nno-collect = true\nstrict = false\nstep = '7s'\n")
	variables := []string{"PATH=x", "TASARD_LISTEN=:2", "TASARD_LOG_LEVEL=error", "TASARD_STEP=9s", "TASARD_CONFIG=" + file, "TASARD_QUOTA_DAY="}
	values := settingsOf(t, variables, "--listen", ":3")
	for name, want := range map[string]string{
		"listen": ":3", "log-level": "error", "quota-day": "7", "no-collect": "true", "strict": "off", "quota-minute": "", "catalogue": "",
	} {
		if values[name] != want {
			t.Errorf("%s is %q, want %q", name, values[name], want)
		}
	}
	if other := settingsOf(t, variables, "--config", writeFile(t, "other.toml", "quota-day = 8\n"))["quota-day"]; other != "8" {
		t.Errorf("--config names another file, and quota-day is %s", other)
	}
}

// TestSettings_ServiceLinks wants the variables to be ignored that Kubernetes and Docker set for a service named
// tasard, and names that only look like them to be refused.
func TestSettings_ServiceLinks(t *testing.T) {
	got := run(t, []string{
		"TASARD_SERVICE_HOST=10.0.0.1", "TASARD_SERVICE_PORT=80", "TASARD_SERVICE_PORT_HTTP=80", "TASARD_PORT=tcp://10.0.0.1:80", "TASARD_PORT_80_TCP=tcp://10.0.0.1:80",
		"TASARD_PORT_80_TCP_PROTO=tcp", "TASARD_PORT_80_TCP_PORT=80", "TASARD_PORT_80_TCP_ADDR=10.0.0.1", "TASARD_METRICS_PORT_9090_TCP_PROTO=tcp",
		"TASARD_METRICS_SERVICE_HOST=10.0.0.2", "TASARD_METRICS_PORT=tcp://10.0.0.2:9090", "TASARD_NAME=/web/tasard", "TASARD_ENV_PATH=/bin",
	}, nil, "version")
	if got.code != exit.OK {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	for _, variable := range []string{"TASARD_PORT=8080", "TASARD_HOST=x", "TASARD_NAME=x", "TASARD_LISTEN_PORT=80"} {
		run(t, []string{variable}, nil, "version").fails(t, exit.BadData, "unknown variable")
	}
}

// TestConfig_CheckIsContent wants a valid configuration to be accepted without a change on the disk; the golden file of
// bad input has a bad one.
func TestConfig_CheckIsContent(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if text := mustRun(t, "config", "check", "--data", data, "--listen", "127.0.0.1:0"); text != "The configuration is valid.\n" {
		t.Errorf("%q", text)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the data directory was made")
	}
}

// TestConfig_CheckListsAll wants every problem: first those of names and values, then those that come from their
// meaning.
func TestConfig_CheckListsAll(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		args string
		want []string // part of each line
	}{
		"lists":           {"data = '/tmp/x'\ntrusted-proxy = ['10.0.0.0/8', 'fd00::/8']\ncluster-members = []", "", nil},
		"no lists":        {"data = '/tmp/x'\nquota-day = [1]", "", []string{":2: quota-day: want a text"}},
		"name":            {"dta = '/tmp/x'", "", []string{":1: unknown key"}},
		"data":            {"data = 5.5", "", []string{":1: data: want a text"}},
		"syntax":          {"data = ", "", []string{":1: "}},
		"values":          {"data = '/tmp/x'\nlisten = 'x'\nlog-level = 'y'", "", []string{":3: log-level", ":2: listen"}},
		"mail":            {"data = '/tmp/x'\nsmtp-addr = 'x'\nmail-from = 'y'", "", []string{":3: mail-from", ":2: smtp-addr"}},
		"login":           {"data = '/tmp/x'\nsmtp-addr = 'x:1'\nmail-from = 'a@example.com'\nsmtp-user = ''\nsmtp-password-file = 'p'", "", []string{":4: smtp-user"}},
		"cluster":         {"data = '/tmp/x'\ncluster-name = 'c'\ncluster-node = 'one'", "--cluster c --cluster-members 1=10.0.0.1:1", []string{":2: unknown key", ":3: cluster-node"}},
		"equal listeners": {"data = '/tmp/x'", "--listen 127.0.0.1:64999 --metrics-listen 127.0.0.1:64999", []string{"--metrics-listen: 127.0.0.1:64999 is the address of --listen too"}},
		"any listener":    {"data = '/tmp/x'", "--listen :64999 --metrics-listen 127.0.0.1:64999", []string{"is the address of --listen too"}},
		"password":        {"data = '/tmp/x'\npublic-url = 'https://u:hunter2@x'", "", []string{":2: public-url: want an address without user and password"}},
		"meaning": {"", "--data d --cluster c --catalogue /n --tls-cert /n --smtp-addr x:1 --mail-from a@example.com --admin-socket /n/s --metrics-listen 203.0.113.1:1", []string{
			"--cluster-node: missing", "--cluster-members: missing", "--cluster-secret-file: missing", "--catalogue: ", "--tls-cert and --tls-key: ", "--admin-socket: ", "--metrics-listen: ",
		}},
	} {
		args := append([]string{"config", "check", "--config", writeFile(t, "t.toml", tt.file+"\n")}, strings.Fields(tt.args)...)
		if !strings.Contains(tt.file+tt.args, "--listen ") && !strings.Contains(tt.file, "listen") {
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
