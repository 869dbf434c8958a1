// Command release builds the release files of one commit: an archive, a Debian package and an SBOM for each of
// linux/amd64 and linux/arm64, one OCI image for both, and SHA256SUMS. make release runs it; make release-check
// compares the output of two runs.
//
//	release -repository . -version 1.2.3 -out dist
//
// Builds are reproducible: the same commit, version and Go release give the same bytes on any machine and in any
// directory. Therefore release works on a fresh clone of the commit, takes every timestamp from the commit, and sets
// owners, modes, order and compression itself. It is a module of its own, so that the packagers (nfpm,
// go-containerregistry, cyclonedx-go) are pinned apart from the program and from the developers' tools. make chooses
// the Go release (RELEASE_GO), and release builds the program with the toolchain that built release.
//
// The version comes from a tag in the clone: the go command stamps it into the program, together with the commit. A
// tag of that name on another commit is an error.
//
// The image has no base image: one layer holds the user, the directories and Mozilla's root certificates (from
// golang.org/x/crypto), the other the program.
//
//	main.go      arguments, order of the steps
//	source.go    the commit, its version, its clone
//	build.go     the program, its man pages and completions
//	notices.go   licences of linked modules
//	archive.go   reproducible tar and gzip
//	stage.go     generated files beside those of the commit; the archive
//	deb.go       the Debian package
//	image.go     the OCI image
//	sbom.go      the SBOM, in CycloneDX
package main
