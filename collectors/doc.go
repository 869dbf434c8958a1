// Package collectors is where rates come from: what is published, in the shape in which it is published, becomes
// engine.Refresh values, the unit in which the engine believes or doubts a source. The package decides nothing about
// rates. A side stays the text that the source gave, zeros, typos and all; what of it is served is the engine's word.
//
// # Observation files
//
// A file of observations is CSV with a header, or NDJSON, one object a line, with the columns as keys:
//
//	observedAt,institutionId,currency,channel,kind,buy,sell,sourceId,effectiveDate,publishedAt
//	2025-05-17T13:29:03Z,popular,USD,unspecified,commercial,58,60.5,infodolar,,
//	{"observedAt":"2025-05-17T13:29:03Z","institutionId":"popular","currency":"USD","buy":"58","sell":"60.5","sourceId":"infodolar"}
//
// Text is UTF-8; a byte order mark and CRLF are tolerated, blank lines are skipped. Instants are RFC 3339, dates
// YYYY-MM-DD, both of the years 1900 to 2999. Empty means null; an empty channel is unspecified, an empty kind
// commercial; observedAt, institutionId, currency and sourceId may not be empty. Neither format may hold control
// characters or U+FFFD, the mark of text that was damaged before it was written.
//
//   - CSV: the header names exactly these columns, in any order. Fields may be quoted as in RFC 4180, but none goes on
//     in the next line.
//   - NDJSON: an absent key is null. Every value is a string or null: sides are text too, because a JSON number has
//     been through binary arithmetic in most programs. Unknown and repeated keys are errors.
//
// Lines that follow each other with the same source and instant are one refresh. A malformed line is reported with its
// number and stops nothing; the file as a whole is refused only for its header. What Writer writes, Reader reads to the
// same values. The format has no column for ExpiresAt: after an import the span of the source counts (T3). Nor does a file
// say whether a refresh is the source's whole answer, so none that is read is Complete.
//
// Limits: see the constants of observations.go.
//
// # The demo market
//
// Market is a market that does not exist: seeded, moving, at the levels and spreads of the real one. Its sources are
// called demo-…, so that nobody takes its rates for real ones. Fill a node with History once, then publish Refreshes.
//
// # Rules for this package
//
// Parsing is pure, from bytes to values; nothing here reads a clock, and chance comes from a seed. No float type: a rate
// is text or a whole number of ten-thousandths of a peso. Readers and markets are not safe for concurrent use.
package collectors
