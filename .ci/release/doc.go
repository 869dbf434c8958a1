// Command release makes the release files of one commit: an archive, a Debian package and an SBOM for linux/amd64 and
// linux/arm64, one OCI image for both, and SHA256SUMS of all. make release calls it; make release-check compares two of
// its results.
//
//	release -repository . -version 1.2.3 -out dist
//
// The same commit, version and Go release give the same bytes on every machine and in every directory. Therefore it
// works on a clone of the commit, not on the working tree; every time is that of the commit; owners, modes, order and
// compression are set here. It is a separate module, so that the packing libraries (nfpm, go-containerregistry,
// cyclonedx-go) are pinned apart from the program and from the developers' tools. make chooses the Go release
// (RELEASE_GO); this program builds with the release that built it.
//
// The version comes from a tag in that clone, which the go command stamps with the commit. A tag of that name on
// another commit is refused.
//
// The image has no base. One layer holds a user, certificates (Mozilla's roots, as published by golang.org/x/crypto)
// and the directories, another the program.
//
//	main.go      arguments, the order of work
//	source.go    the commit, its version, its clone
//	build.go     the program; the man pages and completions that it writes
//	notices.go   licences of what is linked
//	archive.go   tar and gzip, the same everywhere
//	stage.go     files that are added to the commit's; the archive
//	deb.go       the Debian package
//	image.go     the OCI image
//	sbom.go      the program's modules as CycloneDX
package main
