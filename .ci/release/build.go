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

// program is tasard, built for one architecture.
type program struct {
	arch    string
	data    []byte
	modules []linkedModule
	notices []byte // licences of the linked modules
}

// name returns the name that the release files of a program have in common, without an extension.
func (r *release) name(p *program) string {
	return fmt.Sprintf("tasard-%s-linux-%s", r.source.version, p.arch)
}

// toolchain returns environment variables for the go command. They override the settings of the go command on this
// machine, so that builds are the same everywhere.
func toolchain(goos, arch string) []string {
	return []string{
		"GOTOOLCHAIN=" + runtime.Version(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + arch,
		"GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off",
	}
}

// build builds the program into path, and checks the version and commit that the go command has put into it.
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
		return nil, fmt.Errorf("check the built program: version %s of commit %s, modified %s; want %s of %s, unmodified",
			built.Main.Version, settings["vcs.revision"], settings["vcs.modified"], want, r.source.commit)
	}
	return built, nil
}

// programs builds the program for each architecture (all), and for this machine (host). The release has no host
// program: it only generates the documentation.
func (r *release) programs(ctx context.Context) (host string, all []program, err error) {
	host = filepath.Join(r.work, "tasard-host")
	if _, err := r.build(ctx, runtime.GOOS, runtime.GOARCH, host); err != nil {
		return "", nil, err
	}
	for _, arch := range architectures() {
		r.step("linux/%s: building with %s", arch, runtime.Version())
		p, path := program{arch: arch}, filepath.Join(r.work, "tasard-"+arch)
		built, err := r.build(ctx, "linux", arch, path)
		if err == nil {
			p.data, err = os.ReadFile(path)
		}
		if err == nil {
			p.modules, err = r.linked(ctx, arch, built.Deps)
		}
		if err == nil {
			p.notices, err = notices(p.modules)
		}
		if err != nil {
			return "", nil, err
		}
		all = append(all, p)
	}
	return host, all, nil
}

// documents runs the program to generate man pages and shell completions, and writes them into the clone of the
// released commit.
func (r *release) documents(ctx context.Context, host string) error {
	r.step("man pages, completions")
	// The man pages show the date in SOURCE_DATE_EPOCH.
	environ := []string{"SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.source.time.Unix(), 10)}
	for shell, name := range map[string]string{"bash": "tasard.bash", "zsh": "_tasard", "fish": "tasard.fish"} {
		text, err := command(ctx, r.work, environ, host, "completion", shell)
		if err == nil {
			err = r.source.write("completions/"+name, text)
		}
		if err != nil {
			return err
		}
	}
	pages := r.source.path("man")
	if err := os.Mkdir(pages, modeDir); err != nil {
		return fmt.Errorf("make the directory of man pages: %w", err)
	}
	_, err := command(ctx, r.work, environ, host, "man", "--dir", pages)
	return err
}
