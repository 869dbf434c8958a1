// Package archive keeps the documents that were fetched from sources of exchange rates, so that a definition can be
// tried against them, and a rate can be explained a month later.
//
//	writer := archive.New(archive.Config{Dir: dir, Clock: time.Now})
//	writer.Start()                       // later: writer.Close()
//	writer.Keep(archive.Record{...})     // never waits for the disk
//
//	archive.Dir(dir).List("bhd-site", since)   // entries, oldest first
//	archive.Dir(dir).At("bhd-site", at)        // the newest entry of each page that was fetched by a time
//	archive.Dir(dir).Document(&entry)          // the bytes, compared with their digest
//
// At answers which document a published rate is from: give it the source and the time of observation of the rate. It
// reads only the names of files and one entry for each page. The digest of an entry is that of Observation.Document.
//
// # Files
//
//	entries/bhd-site/20261124T120003.120Z-00-<sha256>.json   source, page, addresses, headers, time, and what was read
//	objects/3f/<sha256>.zst                                  the document, compressed with zstd
//
// The number after the time is the index of the page in the definition. A document is kept if it differs from the last
// one of its page. Two entries with the same document share one object. The files can be read without this program:
// cat, jq, zstd -dc.
//
// # Promises
//
//   - Keep never blocks. If the disk is slow, full or broken, documents are not kept; Stats counts them, and the log
//     has one record about it, and one when documents are kept again.
//   - A file is written under another name, synced and renamed, so after a crash it is complete or missing. A document
//     whose bytes do not have its digest is an error of Document. Files with other names are ignored and never removed.
//   - Only the owner can read the files (modes 0700 and 0600). Of the response headers, only those that package fetch
//     lists in source.Document are kept: no cookies and no credentials.
//   - Documents are removed when they are older than Config.AgeMax, or when all together need more than
//     Config.BytesMax: then the oldest of the source that needs most, so that large workbooks do not push out small
//     pages.
//
// Several processes may write to one directory: objects that are not in use are kept for an hour, until their entry
// must be there.
package archive
