// Package collectors fetches the pages of sources and turns them into engine.Refresh values. It does not validate
// rates: buy and sell are the text of the source, and the engine checks them.
//
//	collectors/source     Definition: the requests of a source, and how to read its pages
//	      |  at a slot of the Schedule
//	collectors/fetch      Fetcher: downloads a page
//	      |  source.Document
//	collectors/source     Definition.Parse: bytes to observations (workbooks by collectors/workbook)
//	      |  source.Result, one for each page
//	BuildRefreshes        time of observation, expiry, completeness
//	      |  engine.Refresh
//	Sink                  the rules of the engine, the log, /v1
//
// If a step fails with a source.Failure, nothing is published, and earlier rates stay until they expire.
// collectors/simulated serves an invented market over HTTP, for demos and tests.
//
// Start reading at Collector:
//
//	collector.go          Config, Collector.Run
//	schedule.go           Daily, Every
//	collector_run.go      the slots of one source, and the tries within a slot
//	collector_read.go     one try; Check, which publishes nothing
//	refresh.go            results to refreshes
//	circuit_breaker.go    fewer tries for a source that keeps failing
//	health*.go            the health of sources, and the log
//
// # Slots
//
// A slot is a time at which all sources are due: 08:00, 12:00 and 17:00 in Santo Domingo. Each source has a goroutine.
// After a slot it waits for its jitter and for the semaphore that limits concurrent fetches. Then it fetches and parses
// the pages of the source within a timeout.
//
// The engine accepts a source once for each slot (Refresh.Slot). When a node starts, Config.LastSlot returns the newest
// slot in its log. So a slot interrupted by a crash is repeated, and nothing is published twice. Of several missed
// slots only the newest is collected. Slots follow the wall clock, even if it is set.
//
// Failed pages are tried again after 10 and 30 minutes, unless the next slot is near or the site blocks us. After five
// failed slots the circuit breaker opens, and the source is tried once a day.
//
// # Refreshes
//
// The current observations of a slot are published as refreshes of that slot. A refresh is Complete if all pages of its
// currencies have been read; only then does the engine remove quotes that are missing in it. While a page is missing, a
// quote with one side is not published if the page may have the other side. The history of a workbook is published
// before; the observations of a past day have the end of that day as ObservedAt. An unchanged document still confirms
// its values. The definition sets the expiry.
//
// # Observation files
//
// An observation file is CSV with a header, or NDJSON (docs/sources.md). Consecutive lines with the same source and
// instant are one refresh, which is never Complete. A malformed line is reported and skipped; only a wrong header is an
// error for the whole file. A Reader returns the values that a Writer wrote, except ExpiresAt, which has no column.
//
// # Promises
//
// Parsing is pure; clock, randomness, network and disk come in through Config. Rates are text, never floating point.
// A Collector is safe for concurrent use; a Reader or Writer is not.
package collectors
