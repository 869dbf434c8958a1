package main

import (
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the user ID of the program in the image and the owner of its data. It is above the IDs that
// distributions give to people.
const imageUser = 65532

// image writes one OCI image for all architectures, packed as a tar file.
func (r *release) image(programs []program) error {
	r.step("OCI image")
	base, err := r.baseFiles()
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		image, err := r.imageOf(&p, base)
		if err != nil {
			return fmt.Errorf("make the image of linux/%s: %w", p.arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.arch}},
		})
	}
	index, ok := mutate.Annotations(index, r.annotations()).(v1.ImageIndex)
	if !ok {
		return errors.New("annotate the image: the result is not an index")
	}
	dir := filepath.Join(r.work, "layout")
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write the OCI layout: %w", err)
	}
	if err := at.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "tasard:" + r.source.version})); err != nil {
		return fmt.Errorf("write the OCI layout: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("compute the digest of the image: %w", err)
	}
	r.step("OCI image: %s", digest)
	return r.packLayout(dir)
}

// imageOf returns the image of one architecture. It has a layer with the base files and a layer with the program.
func (r *release) imageOf(p *program, base []file) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range []struct {
		what  string
		files []file
	}{
		{"user, certificates, directories", base},
		{"tasard " + r.source.version, []file{
			{name: "usr/"},
			{name: "usr/bin/"}, {name: "usr/bin/tasard", data: p.data, mode: modeProgram},
			{name: "usr/share/"}, {name: "usr/share/doc/"}, {name: "usr/share/doc/tasard/"},
			{name: "usr/share/doc/tasard/LICENSES", data: p.notices},
		}},
	} {
		layer, err := r.layer(part.files)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{
			Created: v1.Time{Time: r.source.time}, CreatedBy: "make release", Comment: part.what,
		}})
		if err != nil {
			return nil, fmt.Errorf("add a layer: %w", err)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", p.arch, v1.Time{Time: r.source.time}
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%[1]d", imageUser),
		Entrypoint:   []string{"/usr/bin/tasard"},
		Cmd:          []string{"serve"},
		Env:          []string{"PATH=/usr/bin", "TASARD_CONFIG=/etc/tasard/tasard.toml"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Volumes:      map[string]struct{}{"/var/lib/tasard": {}},
		WorkingDir:   "/var/lib/tasard",
		StopSignal:   "SIGTERM",
		Labels:       r.annotations(),
	}
	configured, err := mutate.ConfigFile(image, config)
	if err != nil {
		return nil, fmt.Errorf("configure the image: %w", err)
	}
	return configured, nil
}

func (r *release) annotations() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":         "tasard",
		"org.opencontainers.image.description":   "The Dominican exchange-rate node",
		"org.opencontainers.image.version":       r.source.version,
		"org.opencontainers.image.revision":      r.source.commit,
		"org.opencontainers.image.created":       r.source.time.Format("2006-01-02T15:04:05Z"),
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.source":        "https://github.com/tasard/tasard",
		"org.opencontainers.image.url":           "https://github.com/tasard/tasard",
		"org.opencontainers.image.documentation": "https://github.com/tasard/tasard#readme",
	}
}

// layer returns a compressed image layer with the given files.
func (r *release) layer(files []file) (v1.Layer, error) {
	var tarred bytes.Buffer
	if err := writeTar(&tarred, files, r.source.time); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(tarred.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("make a layer: %w", err)
	}
	return layer, nil
}

// baseFiles returns the files that the program needs from an operating system: user, root certificates and writable
// directories.
func (r *release) baseFiles() ([]file, error) {
	settings, err := r.source.read("packaging/image/tasard.toml")
	if err != nil {
		return nil, err
	}
	certificates, err := rootCertificates()
	if err != nil {
		return nil, err
	}
	return []file{
		{name: "etc/"},
		{name: "etc/group", data: fmt.Appendf(nil, "root:x:0:\ntasard:x:%d:\n", imageUser)},
		{name: "etc/passwd", data: fmt.Appendf(nil, "root:x:0:0:root:/:/nologin\ntasard:x:%d:%[1]d:tasard:/var/lib/tasard:/nologin\n", imageUser)},
		{name: "etc/ssl/"}, {name: "etc/ssl/certs/"},
		{name: "etc/ssl/certs/ca-certificates.crt", data: certificates},
		{name: "etc/tasard/"}, {name: "etc/tasard/tasard.toml", data: settings},
		{name: "tmp/", mode: modeAny},
		{name: "var/"}, {name: "var/lib/"},
		{name: "var/lib/tasard/", mode: modePrivate, owner: imageUser},
	}, nil
}

// rootCertificates returns Mozilla's root certificates as PEM. It omits root certificates that are trusted only for
// certificates issued before a certain date, because a PEM file cannot express that limit. No source of rates needs the
// omitted ones.
func rootCertificates() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("read a root certificate: %w", err)
		}
		_, _ = fmt.Fprintf(&out, "# %s\n", certificate.Subject)
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("write a root certificate: %w", err)
		}
	}
	return out.Bytes(), nil
}

// packLayout packs the directory of an OCI layout into a tar file, which podman, skopeo and docker can load.
func (r *release) packLayout(dir string) error {
	var files []file
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case entry.IsDir():
			files = append(files, file{name: name + "/"})
			return nil
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		files = append(files, file{name: name, data: data})
		return err
	})
	if err != nil {
		return fmt.Errorf("read the OCI layout: %w", err)
	}
	var packed bytes.Buffer
	if err := writeTar(&packed, sorted(files), r.source.time); err != nil {
		return err
	}
	return r.write("tasard-"+r.source.version+".oci.tar", packed.Bytes())
}
