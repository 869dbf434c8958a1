// Command release makes what is handed out of one commit: for linux/amd64 and linux/arm64 an archive, a Debian package and an SBOM,
// one OCI image for both, and SHA256SUMS over all of it. make release calls it; make release-check holds two of its results against
// each other.
//
//	release -repository . -version 1.2.3 -out dist
//
// Promise: the same commit, version and Go release give the same bytes, on whatever machine and in whatever directory. Therefore it
// works on a clone of the commit, not on the files that lie about; every time is that of the commit; owners, modes, order and
// compression are set here and not taken from a machine; and it is a module of its own, so that what packs (nfpm,
// go-containerregistry, cyclonedx-go) is pinned apart from the program and from the developers' tools. make chooses the Go release
// (RELEASE_GO); this program builds with the one that it was built with itself.
//
// The version is told to the program by a tag in that clone: the go command stamps it, with the commit, and nothing is set by the
// linker. A tag of that name on another commit is refused.
//
// The image has no base: one layer with a user, certificates (the roots of Mozilla, as golang.org/x/crypto publishes them) and the
// directories, one with the program.
//
//	main.go      arguments, the order of work
//	source.go    the commit, its version, its clone
//	build.go     the program; the man pages and completions that it writes
//	notices.go   licences of what is linked
//	archive.go   tar and gzip, the same everywhere
//	stage.go     what is put beside the commit's files; the archive
//	deb.go       the Debian package
//	image.go     the OCI image
//	sbom.go      what is in the program, as CycloneDX
package main
