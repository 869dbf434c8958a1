// Package collectors fetches the pages of sources (websites and APIs with exchange rates), and turns them into
// refreshes. A refresh (engine.Refresh) contains the observations (rates) of one source at one time. The package does
// not validate rates: buy and sell keep the text of the page, and the engine validates it.
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
// If a step fails, the page is not published, and its earlier rates stay until they expire. collectors/simulated serves
// an invented market over HTTP, for demos and tests.
//
// Start reading at Collector:
//
//	collector.go          Config, Collector.Run
//	schedule.go           Daily, Every
//	collector_run.go      runner: the slots of one source
//	collector_read.go     one try; Check, a try that publishes nothing
//	refresh.go            from results to refreshes
//	health*.go            the health of sources, and their log records
//	observations.go       Reader and Writer of observation files
//
// # Slots
//
// A slot is a scheduled time for fetching all sources: 08:00, 12:00 and 17:00 in Santo Domingo. Each source has its own
// goroutine. At a slot, the goroutine waits for a random time (jitter), then for the semaphore that limits concurrent
// fetches. Then it fetches and parses the source's pages, within a timeout.
//
// A slot is attempted once: package fetch has already repeated failed requests. A failed page is read again at the next
// slot.
//
// The engine accepts each source and currency once for a slot (Refresh.Slot). When a node starts, Config.LastSlot
// returns the newest slot in its log. After a crash during a slot, the sources are fetched again, and nothing is
// published twice. After several missed slots, they are fetched only for the newest. If the wall clock is set, the
// slots follow the new time.
//
// # Refreshes
//
// A refresh is Complete if every page that may contain one of its currencies was read. The engine removes quotes that
// are missing in a Complete refresh. A quote with one side is not published while another page may still bring its
// other side. The quotes of an unchanged document count as observed again. A workbook may contain past days; they are
// published first.
//
// # Observation files
//
// An observation file is CSV with a header, or NDJSON (docs/sources.md). Consecutive lines with the same source and
// time form one refresh, which is never Complete. A malformed line is reported and skipped; only a wrong header is an
// error for the whole file. A Reader returns the observations of a Writer except ExpiresAt, which has no column.
//
// # Promises
//
// Clock, randomness, network and disk come in through Config. Rates are text, never floating point. A Collector is safe
// for concurrent use; a Reader or Writer is not.
package collectors
