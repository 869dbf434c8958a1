package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// goldenDir keeps the golden files of the commands: the root of the repository has no testdata.
const goldenDir = ".ci/golden"

// updateFlag is set by make golden: then golden files are rewritten.
var updateFlag = flag.Bool("update", false, "rewrite the golden files")

// golden holds text against a golden file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(goldenDir, name)
	if *updateFlag {
		if err := os.MkdirAll(goldenDir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make golden writes it", err)
	}
	if got == string(want) {
		return
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := lineAt(gotLines, i), lineAt(wantLines, i)
		if g != w {
			t.Errorf("%s:%d:\ngot  %s\nwant %s", path, i+1, g, w)
		}
	}
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

func TestGolden_Help(t *testing.T) {
	var text bytes.Buffer
	for _, command := range everyCommand((&process{}).newRoot()) {
		args := append(strings.Fields(command.CommandPath())[1:], "--help")
		fmt.Fprintf(&text, "$ %s --help\n%s\n", command.CommandPath(), mustRun(t, args...))
		if command.Example == "" || command.Short == "" || command.Long == "" {
			t.Errorf("%s lacks an example or a description", command.CommandPath())
		}
	}
	golden(t, "help.txt", text.String())
}

func everyCommand(from *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{from}
	for _, command := range from.Commands() {
		all = append(all, everyCommand(command)...)
	}
	return all
}

// badInput is a command that goes wrong. DIR stands for a directory of the case's own, which holds the files and data, a
// data directory that was never used.
type badInput struct {
	args    string
	environ []string
	files   map[string]string
	stdin   string
}

func badCommandLines() []badInput {
	return []badInput{
		{args: "srve --data DIR/data"},
		{args: "run"},
		{args: "log verfy --data DIR/data"},
		{args: "help exprot"},
		{args: "--bogus"},
		{args: "serve"},
		{args: "serve more"},
		{args: "serve --dta DIR/data"},
		{args: "serve -d DIR/data"},
		{args: "serve --data"},
		{args: "serve --data="},
		{args: "serve --data DIR/data --listen 8080"},
		{args: "serve --data DIR/data --listen localhost:http"},
		{args: "serve --data DIR/data --listen 127.0.0.1:65536"},
		{args: "serve --data DIR/data --listen 203.0.113.1:8080"},
		{args: "serve --data DIR/data --log-format xml"},
		{args: "serve --data DIR/data --log-level loud"},
		{args: "serve --data DIR/data --strict=maybe"},
		{args: "serve --data DIR/data --no-collect=maybe"},
		{args: "serve --data DIR/data --cors-authorization 1"},
		{args: "serve --data DIR/data --fee-notice="},
		{args: "serve --data DIR/data --import DIR/none.csv"},
		{args: "serve --data DIR/data --catalogue DIR/none.json"},
		{args: "serve --data DIR/data --catalogue DIR/c.json", files: map[string]string{"c.json": `{"institutions": [{"id": "Big Bank"}], "x": 1}`}},
		{args: "serve --data DIR/file/data", files: map[string]string{"file": ""}},
		{args: "demo --seed -1"},
		{args: "demo --limits maybe"},
		{args: "demo --step 5"},
		{args: "demo --step 1ms"},
		{args: "import --data DIR/data"},
		{args: "import --data DIR/data DIR/none.csv"},
		{args: "import --data DIR/data DIR"},
		{args: "import --data DIR/data --format xml -"},
		{args: "import --data DIR/data --refused DIR/none/refused.ndjson -"},
		{args: "import --data DIR/file/data -", files: map[string]string{"file": ""}, stdin: header},
		{args: "export --data DIR/data"},
		{args: "export --data DIR/data --what everything"},
		{args: "log verify --data DIR/data"},
		{args: "log verify --data DIR/file", files: map[string]string{"file": ""}},
		{args: "log dump --data DIR/data"},
		{args: "log repair --data DIR/data --yes"},
		{args: "backup --to DIR/b"},
		{args: "backup --data DIR"},
		{args: "backup --data DIR/data --to DIR/b"},
		{args: "backup --data DIR --to DIR/b"},
		{args: "backup vrify DIR/b"},
		{args: "backup verify"},
		{args: "backup verify DIR/b"},
		{args: "backup verify DIR/b", files: map[string]string{"b": "a text, not a backup of anything at all, of some length"}},
		{args: "backup verify DIR/b", files: map[string]string{"b": ""}},
		{args: "restore --data DIR/new"},
		{args: "restore --from DIR/b --data DIR/new"},
		{args: "restore --from DIR/b --data DIR", files: map[string]string{"b": "x"}},
		{args: "version now"},
	}
}

func badAccountLines() []badInput {
	serve, file := "serve --data DIR/data ", map[string]string{"file": "text\n"}
	return []badInput{
		{args: serve + "--limits maybe"},
		{args: serve + "--quota-day 0"},
		{args: serve + "--quota-minute 60001"},
		{args: serve + "--lease 1e3"},
		{args: serve + "--mail pigeon"},
		{args: serve + "--mail smtp --smtp-user ana"},
		{args: serve + "--smtp-addr mail.example.com"},
		{args: serve + "--smtp-addr :25 --mail-from no-reply@example.com"},
		{args: serve + "--smtp-addr mail.example.com:25 --mail-from no-reply"},
		{args: serve + "--smtp-addr mail.example.com:25 --mail-from no-reply@example.com --smtp-tls on"},
		{args: serve + "--smtp-addr mail.example.com:25 --mail-from no-reply@example.com --smtp-tls off --smtp-user ana --smtp-password-file DIR/file", files: file},
		{args: serve + "--smtp-addr mail.example.com:25 --mail-from no-reply@example.com --smtp-user ana --smtp-password-file DIR/none"},
		{args: serve + "--smtp-addr mail.example.com:25 --mail-from no-reply@example.com --smtp-ca-file DIR/file", files: file},
		{args: serve + "--smtp-password secret"},
		{args: serve + "--trusted-proxy 10.0.0.1/8"},
		{args: serve + "--trusted-proxy 0.0.0.0/0"},
		{args: serve + "--trusted-proxy proxy"},
		{args: serve + "--account-url example.com"},
		{args: serve + "--admin-socket DIR/file", files: file},
		{args: "admin acounts"},
		{args: "admin accounts list"},
		{args: "admin accounts list --data DIR/data"},
		{args: "admin accounts list --data DIR"},
		{args: "admin accounts list --admin-socket DIR/file", files: file},
		{args: "admin accounts show --data DIR"},
		{args: "admin accounts show 1 2 --data DIR"},
		{args: "admin accounts suspend 1 --data DIR"},
		{args: "admin accounts limit 1 --data DIR"},
		{args: "admin accounts limit 1 --day -1 --data DIR"},
		{args: "admin accounts restore 1 --reason x --data DIR"},
		{args: "admin keys-required --data DIR"},
		{args: "admin keys-required --show --withdraw --data DIR"},
		{args: "admin keys-required --at 2027-03-01 --data DIR"},
	}
}

func badSourceLines() []badInput {
	serve := "serve --data DIR/data "
	file := func(text string) map[string]string { return map[string]string{"bhd.json": text} }
	return []badInput{
		{args: serve + "--sources DIR/none"},
		{args: serve + "--sources DIR", files: file(`{"id": "bdh-site", "disabled": "gone"}`)},
		{args: serve + "--sources DIR", files: file(`{"id": "bhd-site", "disable": "gone"}`)},
		{args: serve + "--collect-spread 2h"},
		{args: serve + "--collect-contact ana(at)example.com"},
		{args: "demo --break bhd-site"},
		{args: "demo --break bhd-site=bad"},
		{args: "demo --listen 127.0.0.1:0 --break bdh-site=zeros"},
		{args: "sources lst"},
		{args: "sources list more"},
		{args: "sources check bdh-site"},
		{args: "sources check BHD"},
		{args: "sources parse bhd-site"},
		{args: "sources parse bdh-site DIR/bhd.json", files: file("{}")},
		{args: "sources parse bhd-site DIR/none.json"},
		{args: "sources parse bhd-site DIR/bhd.json", files: file("<html><body>Mantenimiento</body></html>")},
		{args: "sources parse infodolar DIR/bhd.json", files: file("{}")},
		{args: "import --data DIR/data --source bdh-site DIR/bhd.json", files: file("{}")},
		{args: "import --data DIR/data --source bhd-site DIR/bhd.json", files: file("")},
		{args: "import --data DIR/data --source bhd-site DIR/bhd.json", files: file(bhdPage)},
		{args: "import --data DIR/data --source bhd-site --saved yesterday DIR/bhd.json", files: file(bhdPage)},
		{args: "import --data DIR/data --source bhd-site --format csv DIR/bhd.json", files: file(bhdPage)},
		{args: "import --data DIR/data --source bhd-site --page usd DIR/bhd.json", files: file(bhdPage)},
		{args: "import --data DIR/data --source infodolar DIR/bhd.json", files: file("{}")},
		{args: "import --data DIR/data --saved 2026-06-30T10:00:00-04:00 DIR/bhd.json", files: file("{}")},
		{args: "sources parse infodolar DIR/bhd.json --page EUR", files: file("{}")},
		{args: "admin quarantine list"},
		{args: "admin quarantine list --data DIR --currency usd"},
		{args: "admin quarantine release --data DIR"},
		{args: "admin quarantine release 17 --data DIR"},
		{args: "admin quarantine reject USD/0 --data DIR"},
		{args: "admin rates set popular --data DIR --buy 58"},
		{args: "admin rates set popular usd --data DIR --buy 58"},
		{args: "admin rates set popular USD --data DIR"},
		{args: "admin rates set popular USD --data DIR --buy 58,10"},
		{args: "admin rates set popular USD --data DIR --buy 0"},
		{args: "admin rates set popular USD --data DIR --buy 057.50"},
		{args: "admin rates set popular USD --data DIR --buy 58 --channel cellar"},
		{args: "admin rates set popular USD --data DIR --buy 58 --effective-date 31/01/2027"},
		{args: "admin rates set popular USD --data DIR --buy 58 --for 1s"},
		{args: "admin rates set popular USD --data DIR --buy 58 --for 6h --expires 2027-01-31T00:00:00Z"},
		{args: "admin rates withdraw popular USD --data DIR"},
	}
}

func badSettingsCases() []badInput {
	serve := "serve --data DIR/data"
	config := func(text string) map[string]string { return map[string]string{"tasard.toml": text} }
	return []badInput{
		{args: serve, environ: []string{"TASARD_LISTN=:1"}},
		{args: serve, environ: []string{"TASARD_YES=true"}},
		{args: serve, environ: []string{"TASARD_LISTEN=8080", "TASARD_LOG_FORMAT=xml"}},
		{args: "demo", environ: []string{"TASARD_STEP=soon"}},
		{args: serve, environ: []string{"TASARD_CONFIG=DIR/none.toml"}},
		{args: serve + " --config DIR"},
		{args: serve + " --config DIR/tasard.toml", files: config("listn = ':8080'\n")},
		{args: serve + " --config DIR/tasard.toml", files: config("# the node\n\nlog-format = 'xml'\nlisten = '8080'\n")},
		{args: serve + " --config DIR/tasard.toml", files: config("listen = ':8080\n")},
		{args: serve + " --config DIR/tasard.toml", files: config("listen = ':8080'\nlisten = ':8081'\n")},
		{args: serve + " --config DIR/tasard.toml", files: config("seed = 1.5\n")},
		{args: serve + " --config DIR/tasard.toml", files: config("[serve]\nlisten = ':8080'\n")},
		{args: serve + " --config DIR/tasard.toml", files: config("no-collect = 'yes'\n")},
	}
}

func badFiles() []badInput {
	file := func(text string) map[string]string { return map[string]string{"o.csv": text} }
	data := "import --data DIR/data DIR/o.csv"
	good := observation(1, "59", "60")
	return []badInput{
		{args: data, files: file("")},
		{args: data, files: file("a,b,c\n")},
		{args: data, files: file(header + good + "2026-06-30,popular,USD,,,59,60,popular-site,,\n")},
		{args: data, files: file(header + good + "x\n" + "2026-06-30T14:02:00Z,popular,USD,,,59,60,popular-site,2026-02-30,\n")},
		{args: data, files: file(header + good + "2026-06-30T14:02:00Z,nobody,USD,,,59,60,popular-site,,\n")},
		{args: data, files: file(header + good + "2026-06-30T14:02:00Z,popular,ABC,,,59,60,popular-site,,\n")},
		{args: "import --data DIR/data --format ndjson -", stdin: `{"observedAt":1}` + "\n"},
		{args: "import --data DIR/data -", stdin: header + good + "2026-06-30T14:02:00Z,popular,USD,cellar,,59,60,popular-site,,\n"},
	}
}

func TestGolden_BadInput(t *testing.T) {
	var text strings.Builder
	for _, cases := range [][]badInput{badCommandLines(), badAccountLines(), badSourceLines(), badSettingsCases(), badFiles()} {
		for _, c := range cases {
			text.WriteString(c.outcome(t))
		}
	}
	golden(t, "bad-input.txt", text.String())
}

// outcome is the command with what it wrote and its exit code, for people.
func (c *badInput) outcome(t *testing.T) string {
	dir := t.TempDir()
	for name, content := range c.files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"TASARD_LOG_FORMAT=text"}
	for _, variable := range c.environ {
		environ = append(environ, strings.ReplaceAll(variable, "DIR", dir))
	}
	got := run(t, environ, strings.NewReader(c.stdin), strings.Fields(strings.ReplaceAll(c.args, "DIR", dir))...)
	if got.code == exitDone || got.stderr == "" {
		t.Errorf("%s: exit code %d, %q; want a failure and its reason", c.args, got.code, got.stderr)
	}
	written := strings.ReplaceAll(got.stderr, dir, "DIR")
	return fmt.Sprintf("%s$ %s\n%sexit code %d\n\n", c.given(), strings.Join(append(c.environ, "tasard "+c.args), " "), written, got.code)
}

// given are the files of the case, for people.
func (c *badInput) given() string {
	var all strings.Builder
	for name, content := range c.files {
		for line := range strings.Lines(content) {
			fmt.Fprintf(&all, "%s: %s\n", name, strings.TrimSuffix(line, "\n"))
		}
	}
	for line := range strings.Lines(c.stdin) {
		fmt.Fprintf(&all, "stdin: %s\n", strings.TrimSuffix(line, "\n"))
	}
	return all.String()
}
