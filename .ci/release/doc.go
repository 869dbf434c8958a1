// Command release builds the release files of one commit. For linux/amd64 and linux/arm64 it builds an archive, a
// Debian package and an SBOM. For both together it builds one OCI image and SHA256SUMS. make release runs it. make
// release-check compares the output of two runs.
//
//	release -repository . -version 1.2.3 -out dist
//
// Builds are reproducible: the same commit, version and Go release give the same bytes on any machine and in any
// directory. For this, release works on a fresh clone of the commit, takes every time from the commit, and sets
// owners, modes, order and compression itself. make builds this command with the Go release RELEASE_GO; this command
// builds the program with the same Go release.
//
// The go command puts the commit and the version into the program. It takes the version from a tag, so release tags
// the clone. If the repository has that tag on another commit, release fails.
//
// The image has no base image. One layer has the user, the directories and Mozilla's root certificates (from
// golang.org/x/crypto), the other has the program.
//
// Command release is a module of its own. The packagers (nfpm, go-containerregistry, cyclonedx-go) are therefore
// pinned separately from the dependencies of tasard and of its tools.
//
//	main.go      arguments, order of the steps
//	source.go    the commit, its version, its clone
//	build.go     the program, its man pages and completions
//	notices.go   licences of linked modules
//	archive.go   reproducible tar and gzip
//	stage.go     generated files in the clone; the archive
//	deb.go       the Debian package
//	image.go     the OCI image
//	sbom.go      the SBOM, in CycloneDX
package main
