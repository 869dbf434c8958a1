package packaging_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readFile reads a file by its path in the repository.
func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPackaging_Unit checks the service's command and directories, and the exit codes after which it is not restarted.
func TestPackaging_Unit(t *testing.T) {
	unit := readUnit(t, "packaging/systemd/tasard.service")
	for key, want := range map[string]string{
		"Type":                     "notify",
		"ExecStart":                "/usr/bin/tasard serve --config /etc/tasard/tasard.toml",
		"RestartPreventExitStatus": "64 78", // bad arguments, bad configuration
		"StateDirectory":           "tasard", "RuntimeDirectory": "tasard", "ConfigurationDirectory": "tasard",
		"User": "tasard", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "ProtectSystem": "strict", "MemoryDenyWriteExecute": "yes",
	} {
		if got, found := unit[key]; !found || got[len(got)-1] != want {
			t.Errorf("%s=%q, want %q", key, got, want)
		}
	}
	settings := readFile(t, "packaging/tasard.toml")
	if socket := readUnit(t, "packaging/systemd/tasard-redirect.socket"); socket["FileDescriptorName"][0] != "redirect" || socket["Service"][0] != "tasard.service" {
		t.Errorf("packaging/systemd/tasard-redirect.socket: %v", socket)
	}
	credential := "/run/credentials/tasard.service/" + unit["LoadCredential"][0]
	if !strings.Contains(settings, "#smtp-password-file = \""+credential+"\"\n") {
		t.Errorf("packaging/tasard.toml does not name %s", credential)
	}
	if !strings.Contains(readFile(t, "packaging/systemd/tasard.sysusers"), "\nu tasard - ") {
		t.Error("packaging/systemd/tasard.sysusers makes no user tasard")
	}
}

// readUnit returns the settings of a unit in their order.
func readUnit(t *testing.T, path string) map[string][]string {
	t.Helper()
	unit := map[string][]string{}
	for line := range strings.SplitSeq(readFile(t, path), "\n") {
		if key, value, found := strings.Cut(line, "="); found && !strings.HasPrefix(line, "#") {
			unit[key] = append(unit[key], value)
		}
	}
	return unit
}

// TestPackaging_Places wants each file that nfpm.yaml names to exist, and the program's paths to be installed.
func TestPackaging_Places(t *testing.T) {
	description := readFile(t, "packaging/nfpm.yaml")
	sources := regexp.MustCompile(`(?m)(?:src|install|remove): (packaging/\S+)$`).FindAllStringSubmatch(description, -1)
	if len(sources) < 8 {
		t.Errorf("%d files of packaging are named, want at least 8", len(sources))
	}
	for _, found := range sources {
		if files, err := filepath.Glob("../" + found[1]); err != nil || len(files) == 0 {
			t.Errorf("packaging/nfpm.yaml names %s, which does not exist: %v", found[1], err)
		}
	}
	for _, place := range []string{"/usr/bin/tasard", "/etc/tasard/tasard.toml", "/usr/lib/systemd/system/tasard.service"} {
		if !strings.Contains(description, "dst: "+place+"\n") {
			t.Errorf("packaging/nfpm.yaml installs no %s", place)
		}
	}
}

// TestPackaging_OneGo wants Makefile and Dockerfile to name the same Go release, one that go.mod allows.
func TestPackaging_OneGo(t *testing.T) {
	inMakefile := regexp.MustCompile(`(?m)^RELEASE_GO := go([0-9.]+)$`).FindStringSubmatch(readFile(t, "Makefile"))
	inDockerfile := regexp.MustCompile(`(?m)^ARG GO_VERSION=([0-9.]+)$`).FindStringSubmatch(readFile(t, "Dockerfile"))
	needed := regexp.MustCompile(`(?m)^go ([0-9]+\.[0-9]+)`).FindStringSubmatch(readFile(t, "go.mod"))
	if inMakefile == nil || inDockerfile == nil || needed == nil || inMakefile[1] != inDockerfile[1] || !strings.HasPrefix(inMakefile[1], needed[1]+".") {
		t.Errorf("Makefile %q, Dockerfile %q, go.mod %q", inMakefile, inDockerfile, needed)
	}
}

// TestPackaging_OneBuild wants Makefile, Dockerfile and release to build the program with the same flags for its size.
func TestPackaging_OneBuild(t *testing.T) {
	for _, file := range []string{"Makefile", "Dockerfile", ".ci/release/release"} {
		if !regexp.MustCompile(`build -trimpath -buildvcs=.*\$\(cat .ci/smaller\) `).MatchString(readFile(t, file)) {
			t.Errorf("%s does not build with the flags in .ci/smaller", file)
		}
	}
}

// TestPackaging_OneImage wants the Dockerfile to build the image of a release: same user, same files, same command.
func TestPackaging_OneImage(t *testing.T) {
	dockerfile, released := readFile(t, "Dockerfile"), readFile(t, ".ci/release/release")
	for _, both := range [][2]string{
		{"USER 65532:65532", `User: "65532:65532"`},
		{"TASARD_CONFIG=/etc/tasard/tasard.toml", "TASARD_CONFIG=/etc/tasard/tasard.toml"},
		{"packaging/image/tasard.toml", "packaging/image/tasard.toml"},
		{`ENTRYPOINT ["/usr/bin/tasard"]`, `Entrypoint: ["/usr/bin/tasard"]`},
		{`CMD ["serve"]`, `Cmd: ["serve"]`},
		{"VOLUME /var/lib/tasard", `"/var/lib/tasard": {}`},
		{"EXPOSE 8080", `"8080/tcp": {}`},
	} {
		if !strings.Contains(dockerfile, both[0]) || !strings.Contains(released, both[1]) {
			t.Errorf("%q of the Dockerfile and %q of the release do not go together", both[0], both[1])
		}
	}
	health := `["/usr/bin/tasard", "ping", "--live"]`
	compose := strings.Replace(health, "[", `["CMD", `, 1)
	if !strings.Contains(dockerfile, "CMD "+health) || !strings.Contains(readFile(t, "packaging/compose.yaml"), "test: "+compose) ||
		!strings.Contains(readFile(t, "cmd/testdata/help.txt"), "$ tasard ping --help\n") {
		t.Errorf("Dockerfile and compose file do not both ask %s", health)
	}
}

// TestRelease_Refuses checks which versions of which commits a release refuses, before it builds anything.
func TestRelease_Refuses(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, ".ci", "release", "release")
	if err := errors.Join(os.MkdirAll(filepath.Dir(script), 0o700), os.MkdirAll(filepath.Join(dir, "dist", "old"), 0o700),
		os.WriteFile(script, []byte(readFile(t, ".ci/release/release")), 0o600)); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)
		if output, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, output)
		}
	}
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "-m", "one")
	git("tag", "--no-sign", "v1.0.0")
	git("commit", "--quiet", "--allow-empty", "-m", "two")
	for version, want := range map[string]string{
		"":           "has no tag like v1.2.3; tag it, or give VERSION=1.2.3",
		"1.0.0":      "the tag v1.0.0 is on commit",
		"v1.1.0":     `version "v1.1.0": want one like`,
		"1.1":        `version "1.1": want one like`,
		"1.1.0+x":    `version "1.1.0+x": want one like`,
		"1.1.0-rc.2": "dist: not empty; remove it",
	} {
		output, err := exec.CommandContext(t.Context(), "bash", script, version).CombinedOutput()
		if err == nil || !strings.Contains(string(output), want) {
			t.Errorf("%q: %v, %s; want %q", version, err, output, want)
		}
	}
}
