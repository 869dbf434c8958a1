// Package collectors turns what institutions publish into engine.Refresh values. It decides nothing about rates: a
// side stays the text of the source, and the engine judges it.
//
//	collectors/source     Definition: a source as data: what to request, how to read it
//	      |  at a slot of the Schedule
//	collectors/fetch      Fetcher: downloads a page
//	      |  source.Document
//	collectors/source     Definition.Parse: bytes to observations (workbooks by collectors/workbook)
//	      |  source.Result, one for each page
//	BuildRefreshes        time of observation, expiry, completeness
//	      |  engine.Refresh
//	Sink                  the rules of the engine, the log, /v1
//
// Any step can fail with a source.Failure. Then nothing is published, and earlier rates stay until they expire.
// collectors/simulated serves an invented market over HTTP, for demos and tests.
//
// Start reading at Collector:
//
//	collector.go          Config, Collector.Run
//	schedule.go           Daily, Every
//	collector_run.go      the slots and tries of one source
//	collector_read.go     one try; Check, which publishes nothing
//	refresh.go            results to refreshes
//	circuit_breaker.go    sources that fail for long
//	health*.go            the health of sources, and what is logged
//
// # Slots
//
// Each source has a goroutine. After a slot (08:00, 12:00 and 17:00 in Santo Domingo) it waits for its jitter and for
// the semaphore that limits concurrent fetches, then fetches and parses its pages within a timeout.
//
// The engine accepts a source once for each slot (Refresh.Slot), and Config.LastSlot tells a starting node what its
// log has. So a slot interrupted by a crash is made up for, and nothing is published twice. Of several missed slots
// only the newest counts. Slots follow the wall clock, also when it is set.
//
// Failed pages are tried again after 10 and 30 minutes, unless the next slot is near or the site blocks us. After
// five failed slots the circuit breaker opens, and the source is tried once a day.
//
// # Refreshes
//
// Current observations are one refresh of the slot, Complete in every currency whose pages have all been read: only
// there does the engine treat a missing quote as lost. While a page is missing, a quote without the side that it may
// have is not published. The history of a workbook is published first, each day with its own end as time of
// observation. An unchanged document still confirms its values. Expiry is set by the definition.
//
// # Observation files
//
// An observation file is CSV with a header, or NDJSON (docs/sources.md). Consecutive lines with the same source and
// instant are one refresh, never Complete. A malformed line is reported and skipped; a file is refused only for its
// header. A Reader reads what a Writer writes to the same values, except ExpiresAt, which has no column.
//
// # Promises
//
// Parsing is pure; clock, randomness, network and disk come in through Config. Rates are text, never floating point.
// A Collector is safe for concurrent use, Reader and Writer are not.
package collectors
