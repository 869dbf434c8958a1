// Package engine holds the rates, institutions and currencies, and every rule about them. It starts nothing, stores
// nothing and reads no clock: times come in as arguments, changes go out as events.
//
// A CurrencyState is the state of one currency. It has one owner (an actor of package actors), and changes in three
// steps:
//
//	Decide(command, now)   checks the command against the rules, changes nothing, returns events and a receipt
//	                       (the owner writes the events to the log)
//	Apply(event)           changes the state; a replay of the log needs neither clock, catalogue nor rules
//	Snapshot()             an immutable copy, which any goroutine may read
//
// From there on everything is immutable and shared:
//
//	Observation, Refresh → CurrencyState → CurrencySnapshot → RankedView → MarketView → Page
//	(what a source gave)    (one owner)                       (at one time)  (all currencies)
//
// A RankedView tells for one instant which rates are published, stale and how they rank. Each is derived from the one
// before, so that a change costs as much as what changed. Long work can yield between small steps (SetYield).
//
// Service and Ingester are the contract between the actors, which own the state, and their callers: package httpapi,
// collectors and commands.
//
//	observation.go, event.go, command.go                              what comes in, what is decided
//	validator.go, plausibility.go                                     which observations are refused
//	currency_state.go, quote_store.go, apply.go, history_rows.go      the state of a currency
//	currency_snapshot.go, ranked_view.go, market_view.go, history.go  what is answered
//	decimal.go, amount.go, date.go                                    exact values
//	catalogue.go, catalogue.json                                      institutions, currencies and sources
//
// The numbered rules that tests are named after are in docs/decisions.md.
package engine
