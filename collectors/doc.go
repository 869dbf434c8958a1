// Package collectors is where rates come from: what institutions publish becomes engine.Refresh values, the unit in which the
// engine believes or doubts a source. The package decides nothing about rates. A side stays the text that the source gave, zeros,
// typos and all; what of it is served is the engine's word.
//
// # The way of a rate
//
//	collectors/source    Definition: a source as data, whom to ask for what and where a value stands
//	       |  at a slot of the Schedule
//	collectors/fetch     Fetcher: page to document, with manners and within limits
//	       |  source.Document
//	collectors/source    Definition.Parse: bytes to observations, pure (workbooks through collectors/workbook)
//	       |  source.Result, one for each page
//	BuildRefreshes            when it was said, how long it is believed, whether anything is missing
//	       |  engine.Refresh
//	Sink                 the engine's judgement, then the log, then /v1
//
// On any step a source may fail (source.Failure). Then nothing is handed over, and what was published stays until it expires
// (I4). collectors/simulated is the other end for demos and tests: a site that publishes an invented market over HTTP.
//
// Begin with Collector (collector.go), then read on in the order of a run:
//
//	schedule.go          when: Daily, Every
//	collector_run.go     a source's life: slots, tries, pauses
//	collector_read.go    one try: fetch, read, and Check, which stores nothing
//	refresh.go           from answers to refreshes
//	breaker.go           a source that has failed for long rests
//	health*.go           what operators see of it, and what the log says
//
// # When
//
// Each source has a goroutine, which Run waits for. At a slot (08:00, 12:00 and 17:00 in Santo Domingo) it waits for its offset, so
// that not all ask at once; then for one of the places, which bound how many are fetched and read together. A try has a budget; a
// source that exceeds it loses its place.
//
// A slot is handed over once. Refresh.Slot names it, and the engine hears a source once for a slot; Config.LastSlot tells a starting node
// what its log has. So a slot that a crash cut short is made up for, and nothing is published twice. Of several missed slots only
// the newest counts. Slots follow the clock, also when it is set; one that is done is never begun again.
//
// What failed is tried again after 10 and 30 minutes, only the pages that failed, unless the next slot is near or the site blocks
// us. After five slots in which nothing could be read a source rests: it is tried in the first slot of each day, until it can be
// read again.
//
// # What is handed over
//
// Observations of now are one refresh, which answers the slot and is Complete in every currency whose pages have all answered: only
// there the engine takes what is missing for a loss. While a page is silent, half a quote whose other side may stand there is left
// out. The history of a workbook goes first, each day as of its own end. Every check confirms: lastCheckedAt moves also when the
// document has not changed. How long a value is believed its definition says, from the check and from its date.
//
// # Observation files
//
// A file of observations is CSV with a header, or NDJSON (docs/sources.md shows both). Lines that follow each other with the same
// source and instant are one refresh, never Complete. A malformed line is reported with its number and stops nothing; the file as a
// whole is refused only for its header. What Writer writes, Reader reads to the same values; ExpiresAt has no column.
//
// # Rules for this package
//
// Parsing is pure, from bytes to values; clock, chance, network and disk come in through Config. There is no float type: a rate is
// text. A Collector is safe for concurrent use, Reader and Writer are not.
package collectors
