// Package engine has the rates, institutions and currencies, and every rule about them. It starts no goroutines, writes
// no files and reads no clock: times are arguments, and changes are returned as events.
//
// A CurrencyState is the state of one currency. It is owned by one actor of package actors, and changes in three steps:
//
//	Decide(command, now)   checks the command against the rules, changes nothing, returns events and a receipt
//	                       (the owner writes the events to the log)
//	Apply(event)           changes the state; a replay of the log needs neither clock, catalogue nor rules
//	Snapshot()             an immutable copy, which any goroutine may read
//
// Values derived from a snapshot are immutable and shared:
//
//	Observation, Refresh → CurrencyState → CurrencySnapshot → RankedView → MarketView → Page
//	(of a source)           (one owner)                       (at one time)  (all currencies)
//
// A RankedView has the published rates at one time, which of them are stale, and their ranking. It is derived from the
// view before it, so that its cost depends on the size of the change. Long work can yield between small steps
// (SetYield).
//
// Service and Ingester are the interfaces through which package httpapi, the collectors and the commands use the
// actors.
//
//	observation.go, event.go, command.go                              input of decisions, and their events
//	validator.go, plausibility.go                                     which observations are refused
//	currency_state.go, quote_store.go, apply.go, history_rows.go      the state of a currency
//	currency_snapshot.go, ranked_view.go, market_view.go, history.go  data of responses
//	decimal.go, amount.go, date.go                                    exact values
//	catalogue.go, catalogue.json                                      institutions, currencies and sources
//
// The numbered rules that tests are named after are in docs/decisions.md.
package engine
