// Command release prints Mozilla's root certificates as PEM, for the image. The image has no base image to take them
// from. It omits root certificates that are trusted only for certificates issued before a certain date, because a PEM
// file cannot express that limit. No source of rates needs the omitted ones.
//
// The script release beside it builds the release. This module pins the packager nfpm and the certificates separately
// from the dependencies of tasard and of its tools.
package main
