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
//	observation.go, event.go, command.go                              input and results of decisions
//	validator.go, plausibility.go                                     which observations are refused
//	currency_state.go, quote_store.go, apply.go, history_rows.go      the state of a currency
//	currency_snapshot.go, currency_view.go, market_view.go, history.go  data of responses
//	decimal.go, amount.go, date.go                                    exact values
//	catalogue.go, catalogue.json                                      institutions, currencies and sources
//
// Words of the rules:
//
//	candidate     an observation while it is checked
//	backfill      an observation of a past day, for the history only
//	reference     the rate of the central bank that is of the kind Reference
//	contradict    the market or the reference rate shows that a published value is wrong
//	off market    too far from the median of the other institutions
//	out of band   outside the plausible range of the currency, or too far from the reference rate
//	released      accepted by an operator, from quarantine
//	side          buy or sell
//
// The tests are named after numbered rules, which docs/decisions.md lists.
package engine
