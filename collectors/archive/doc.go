// Package archive keeps the documents that were fetched from sources of exchange rates, so that a definition can be
// tried against them, and a rate can be explained a month later.
//
//	2026-11-24/bhd-site/160003.120Z-00-<sha256>.zst
//
// The folders are the day (UTC) and the source. The name has the time, the index of the page in the definition, and the
// digest of the document, which is that of Observation.Document. A document is kept if it differs from the last one of
// its page. The files can be read without this program: zstd -dc.
//
// A file is complete or missing after a crash, and only its owner can read it. Files that are older than Config.AgeMax
// are removed once a day, but the newest of each page stays. With less than 512 MiB of free disk nothing is kept.
package archive
