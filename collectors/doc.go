// Package collectors fetches the pages of sources, and turns them into refreshes. It does not validate rates: buy and
// sell keep the text of the page, and the engine validates it.
//
//	collectors/source     Definition: the requests of a source, and how to read its pages
//	      |  at each slot of the Schedule
//	collectors/fetch      Fetcher: downloads a page
//	      |  source.Document
//	collectors/source     Definition.Parse: from bytes to observations (workbooks: collectors/workbook)
//	      |  source.Result, one for each page
//	BuildRefreshes        adds time of observation, expiry and completeness
//	      |  engine.Refresh
//	Sink                  checks and publishes them (engine.Ingester)
//
// If a step fails, the page is not published, and its earlier rates stay until they expire. Start at Collector:
//
//	collector.go          Config, Collector.Run; the schedules Daily and Every
//	collector_run.go      runner: the slots of one source; one try; Check, a try that publishes nothing; RunNow
//	refresh.go            from results to refreshes
//	health.go             the health of sources, and their log records
//	observations.go       Reader and Writer of observation files
//
// # Words
//
//	slot      a scheduled time for all sources: 08:00, 12:00 and 17:00 in Santo Domingo
//	jitter    a random wait after the slot, so that not all nodes send requests in the same second
//	try       one reading of all pages of a source; a run (baseline.go) is the try of a slot
//	sink      the engine: it publishes rates or refuses them
//	complete  a refresh for which all pages that may have its currencies were read
//	baseline  the quotes that a source usually has
//
// # Slots
//
// Each source has its own goroutine. At a slot it waits for its jitter, then for the semaphore that limits concurrent
// fetches. Then it tries the source once, within a timeout: package fetch has already repeated failed requests. A page
// that failed is read again at the next slot.
//
// The engine accepts each source and currency once for a slot. At a start, Config.LastSlot returns the newest slot in
// the log. So a crash during a slot leads to another try, and nothing is published twice. Of several missed slots only
// the newest is tried. If the wall clock is set, the slots follow the new time.
//
// # Refreshes
//
// The engine removes the quotes that are missing in a complete refresh. A quote with one side is not published if a
// page that may have the other side was not read. An unchanged document counts as observed again. The past days of a
// workbook are published before its newest day.
//
// # Observation files
//
// An observation file is CSV with a header, or NDJSON (docs/sources.md). Consecutive lines with the same source and
// time form one refresh, never a complete one. A malformed line is reported and skipped; only a wrong header is an
// error for the whole file.
//
// Rates are text, never floating point. A Collector is safe for concurrent use; a Reader or Writer is not.
package collectors
