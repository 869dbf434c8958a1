package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// nfpmFile describes the Debian package. Its paths are relative to the clone of the released commit. The method stage
// has written the generated files into the clone.
const nfpmFile = "packaging/nfpm.yaml"

func (r *release) deb(p *program) error {
	r.step("linux/%s: Debian package", p.arch)
	config, err := nfpm.ParseFileWithEnvMapping(r.source.path(nfpmFile), func(name string) string {
		return map[string]string{"ARCH": p.arch, "VERSION": r.source.version}[name]
	})
	if err != nil {
		return fmt.Errorf("%s: %w", nfpmFile, err)
	}
	info, err := config.Get("deb")
	if err != nil {
		return fmt.Errorf("%s: %w", nfpmFile, err)
	}
	info.MTime = r.source.time
	for _, script := range []*string{&info.Scripts.PostInstall, &info.Scripts.PreRemove, &info.Scripts.PostRemove} {
		*script = r.source.path(*script)
	}
	for _, content := range info.Contents {
		// Set owner and mode: otherwise the package would get those of the files on this machine.
		content.Source = r.source.path(content.Source)
		attributes := cmp.Or(content.FileInfo, &files.ContentFileInfo{})
		attributes.Owner, attributes.Group = cmp.Or(attributes.Owner, "root"), cmp.Or(attributes.Group, "root")
		attributes.Mode = cmp.Or(attributes.Mode, os.FileMode(modeFile))
		content.FileInfo = attributes
	}
	info = nfpm.WithDefaults(info)
	if err := info.Validate(); err != nil {
		return fmt.Errorf("%s: %w", nfpmFile, err)
	}
	var packed bytes.Buffer
	if err := deb.Default.Package(info, &packed); err != nil {
		return fmt.Errorf("make the Debian package: %w", err)
	}
	return r.write(deb.Default.ConventionalFileName(info), packed.Bytes())
}
