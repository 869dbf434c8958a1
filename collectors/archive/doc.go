// Package archive stores the documents fetched from sources of exchange rates. A definition can be tried on them, and a
// rate can be explained a month later.
//
//	2026-11-24/bhd-site/160003.120Z-00-<sha256>.zst
//
// The folders are the day (UTC) and the source. The name consists of the time, the index of the page in the definition,
// and the document's digest (Observation.Document). A document is stored if it differs from the last one of its page.
// The files can be read without this program: zstd -dc.
//
// After a crash a file is complete or missing. Only its owner can read it. Files older than Config.AgeMax are removed
// once a day, except the newest of each page. With less than 512 MiB of free disk nothing is stored.
package archive
