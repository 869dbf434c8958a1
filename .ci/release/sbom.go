package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"runtime"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// sbom writes the SBOM of a program, with the licences of its modules.
func (r *release) sbom(p *program) error {
	r.step("linux/%s: SBOM of %d modules", p.arch, len(p.modules)-1)
	bom := cyclonedx.NewBOM()
	whole := r.mainComponent(p)
	var components []cyclonedx.Component
	var parts []string
	for _, m := range p.modules {
		component := moduleComponent(m)
		components = append(components, component)
		parts = append(parts, component.BOMRef)
	}
	bom.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "%s?arch=%s&commit=%s", whole.PackageURL, p.arch, r.source.commit)).String()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.source.time.Format(time.RFC3339), Component: &whole}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: whole.BOMRef, Dependencies: &parts}}
	var out bytes.Buffer
	// Version 1.6 is not the newest, but tools that read SBOMs support it.
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return fmt.Errorf("write the SBOM: %w", err)
	}
	return r.write(r.name(p)+".cdx.json", out.Bytes())
}

func (r *release) mainComponent(p *program) cyclonedx.Component {
	url := fmt.Sprintf("pkg:golang/github.com/tasard/tasard@v%s?goos=linux&goarch=%s&type=module", r.source.version, p.arch)
	return cyclonedx.Component{
		BOMRef: url, Type: cyclonedx.ComponentTypeApplication, Name: "github.com/tasard/tasard", Version: "v" + r.source.version,
		PackageURL: url, Licenses: licensed("Apache-2.0"),
		Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(p.data))}},
		Properties: &[]cyclonedx.Property{
			{Name: "commit", Value: r.source.commit}, {Name: "go", Value: runtime.Version()},
			{Name: "GOOS", Value: "linux"}, {Name: "GOARCH", Value: p.arch}, {Name: "CGO_ENABLED", Value: "0"},
		},
		ExternalReferences: &[]cyclonedx.ExternalReference{{Type: cyclonedx.ERTypeVCS, URL: "https://github.com/tasard/tasard"}},
	}
}

func moduleComponent(m linkedModule) cyclonedx.Component {
	component := cyclonedx.Component{
		BOMRef: m.url, Type: cyclonedx.ComponentTypeLibrary, Name: m.path, Version: m.version, PackageURL: m.url,
		Scope: cyclonedx.ScopeRequired, Licenses: licensed(m.licence),
	}
	if m.sum != "" {
		component.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: m.sum}}
	}
	return component
}

// licensed returns the licences of a component. expression is an SPDX ID or an SPDX expression.
func licensed(expression string) *cyclonedx.Licenses {
	if strings.Contains(expression, " ") {
		return &cyclonedx.Licenses{{Expression: expression}}
	}
	return &cyclonedx.Licenses{{License: &cyclonedx.License{ID: expression}}}
}
