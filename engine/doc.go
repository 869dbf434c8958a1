// Package engine implements the exchange rates of institutions, and every rule about rates. It starts no goroutines,
// writes no files and reads no clock: times are arguments, and changes are returned as events.
//
// A CurrencyState is the mutable state of one currency. An actor of package actors owns it and calls its methods:
//
//	Decide(command, now)   checks the command against the rules and returns events and a receipt (the actor then
//	                       writes the events to the log)
//	Apply(event)           changes the state; a replay of the log needs no clock, catalogue or rules
//	Snapshot()             returns an immutable copy, which any goroutine may read
//
// The types on the way from an observation to a response, all but CurrencyState immutable:
//
//	Observation, Refresh → CurrencyState → CurrencySnapshot → MarketView                     → Page
//	(of a source)          (one currency)                     (all currencies, at one time)
//
// Service and Ingester are interfaces that package actors implements. Package httpapi, the collectors and the commands
// call them.
//
//	observation.go                             input and results of decisions
//	validator.go, plausibility.go, market.go   which observations are refused
//	currency_state.go, quote_store.go          the state of a currency
//	view.go                                    data of responses
//	rate.go, decimal.go, date.go               values
//	catalogue.go, catalogue.json               institutions, currencies and sources
//
// # Terms
//
//	source:       an origin of observations, such as a bank's web site; one source may publish for many institutions
//	observation:  what a source says about one rate at one time, before any check
//	refresh:      all observations of one source at one time
//	slot:         the scheduled time of a refresh
//	candidate:    an observation while it is being checked
//	backfill:     an observation older than the source's newest one; it can change only the history
//	side:         the buy price or the sell price of a rate, from the institution's point of view
//	reference:    the official rate of the central bank, which is not an offer; other rates are commercial
//	fresh:        not expired; an expired rate is stale, and still published
//	market:       the fresh commercial quotes of one currency at one time
//	last good:    the newest value of a source that was accepted
//	permille:     a limit in thousandths of the price that a value is compared with
//	off market:   too far from the median of the other institutions
//	out of band:  outside the plausible range of the currency, or too far from the reference rate
//	contradicted: published, and later found to be too far from the market or from the reference rate
//	quarantine:   refused observations, stored until an operator releases (publishes) or rejects (deletes) them
//	pending:      refused as implausible, but accepted after enough repetitions (confirmation)
//
// The tests are named after numbered rules, which docs/decisions.md lists.
package engine
