// Package engine is what is true: rates, institutions, currencies, and every rule about them. It starts nothing, stores nothing and
// reads no clock: instants come in as arguments, facts go out as events.
//
// # Where to begin
//
// Observation and Refresh are what comes in; Rate, HistoryEntry, Conversion, InstitutionItem and CurrencyItem are what goes out;
// Service and Ingester are the contract between whoever holds the state (package actors) and whoever asks (package httpapi, commands).
//
// A CurrencyState is the state of one currency. A command goes through three steps:
//
//	Decide(command, now)  pure: holds the command against the rules, gives events and a receipt
//	(the owner makes the events durable)
//	Apply(event)          changes the book; the same at recovery, without clock, catalogue or rules
//
// CurrencySnapshot is the book's immutable state, RankedView is a CurrencySnapshot at one instant (what is published, stale, ranked), MarketView is every CurrencySnapshot at
// one instant. Pages are cut from these and shared. What is made anew is made of what was there before: a RankedView of the older one, a
// MarketView of older Views. Long work of a CurrencyState can be cut into pieces (SetYield) between which others are answered.
//
//	observation.go, judge.go, plausible.go   what comes in and what is refused (I1–I4)
//	bound.go, slots.go                       what is believed of whom, and what was heard already
//	state.go, apply.go, days.go, book.go     what is known
//	board.go, view.go, history.go, market.go what is answered (S, P, T)
//	pace.go                                  how long work is cut into pieces
//	decimal.go, amount.go, date.go           exact values
//	catalogue.go, catalogue.json             institutions, currencies, sources
//
// Package engine/account is the other half: in whose name a question is asked, and how many are left.
//
// # Decisions
//
// Comments name decisions by id (S11, X5): docs/decisions.md says each in a sentence, with the test that holds it. S, P, T, I and E are the
// contract's; X1 to X18 were made here, and say what the contract leaves open.
package engine
