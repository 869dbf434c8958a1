package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// program is the built program of one architecture.
type program struct {
	arch    string
	path    string
	data    []byte
	build   *buildinfo.BuildInfo
	modules []linkedModule
	notices []byte // licences of what is linked
}

// name is what the files of this architecture are called, but for the extension.
func (r *release) name(p program) string {
	return fmt.Sprintf("tasard-%s-linux-%s", r.source.version, p.arch)
}

// toolchain is the environment of the go command: nothing of the machine may reach the bytes.
func toolchain(goos, arch string) []string {
	return []string{
		"GOTOOLCHAIN=" + runtime.Version(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + arch,
		"GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off",
	}
}

// build builds the program of the commit, and holds what it says of itself against what it should be.
func (r *release) build(ctx context.Context, goos, arch, path string) (*buildinfo.BuildInfo, error) {
	_, err := command(ctx, r.source.dir, toolchain(goos, arch), "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", path, ".")
	if err != nil {
		return nil, err
	}
	built, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read what was built: %w", err)
	}
	settings := map[string]string{}
	for _, setting := range built.Settings {
		settings[setting.Key] = setting.Value
	}
	want := "v" + r.source.version
	if built.Main.Version != want || settings["vcs.revision"] != r.source.commit || settings["vcs.modified"] != "false" {
		return nil, fmt.Errorf("the program says that it is %s of commit %s, modified %s; want %s of %s, unmodified",
			built.Main.Version, settings["vcs.revision"], settings["vcs.modified"], want, r.source.commit)
	}
	return built, nil
}

// program builds for one architecture, and gathers what is in it.
func (r *release) program(ctx context.Context, arch string) (program, error) {
	r.step("linux/%s: building with %s", arch, runtime.Version())
	p := program{arch: arch, path: filepath.Join(r.work, "tasard-"+arch)}
	var err error
	if p.build, err = r.build(ctx, "linux", arch, p.path); err != nil {
		return p, err
	}
	if p.data, err = os.ReadFile(p.path); err != nil {
		return p, fmt.Errorf("read what was built: %w", err)
	}
	if p.modules, err = r.linked(ctx, p); err != nil {
		return p, err
	}
	p.notices, err = notices(p.modules)
	return p, err
}

// papers are the man pages and completions, which the program writes itself; so it is built for this machine once.
func (r *release) papers(ctx context.Context) ([]file, error) {
	r.step("man pages, completions")
	host := filepath.Join(r.work, "tasard-host")
	if _, err := r.build(ctx, runtime.GOOS, runtime.GOARCH, host); err != nil {
		return nil, err
	}
	// SOURCE_DATE_EPOCH is the date of the pages.
	environ := []string{"SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.source.time.Unix(), 10)}
	var papers []file
	for shell, name := range map[string]string{"bash": "tasard.bash", "zsh": "_tasard", "fish": "tasard.fish"} {
		text, err := command(ctx, r.work, environ, host, "completion", shell)
		if err != nil {
			return nil, err
		}
		papers = append(papers, file{name: "completions/" + name, data: text})
	}
	pages := filepath.Join(r.work, "man")
	if err := os.Mkdir(pages, 0o755); err != nil {
		return nil, fmt.Errorf("make a place for man pages: %w", err)
	}
	if _, err := command(ctx, r.work, environ, host, "man", "--dir", pages); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(pages)
	if err != nil {
		return nil, fmt.Errorf("list the man pages: %w", err)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("tasard man --dir %s wrote no page", pages)
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(pages, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read a man page: %w", err)
		}
		papers = append(papers, file{name: "man/" + entry.Name(), data: data})
	}
	return sorted(papers), nil
}
