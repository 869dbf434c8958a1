// Package engine is what is true: rates, institutions, currencies, and every rule about them. It starts nothing, stores nothing and
// reads no clock: instants come in as arguments, facts go out as events.
//
// # Where to begin
//
// Observation and Refresh are what comes in; Rate, HistoryEntry, Conversion, InstitutionItem and CurrencyItem are what goes out;
// Service and Intake are the contract between whoever holds the state (package actors) and whoever asks (package httpapi, commands).
//
// A Book is the state of one currency. A command goes through three steps:
//
//	Decide(command, now)  pure: holds the command against the rules, gives events and a receipt
//	(the owner makes the events durable)
//	Apply(event)          changes the book; the same at recovery, without clock, catalogue or rules
//
// Board is the book's immutable state, View is a Board at one instant (what is published, stale, ranked), Market is every Board at
// one instant. Pages are cut from these and shared. What is made anew is made of what was there before: a View of the older one, a
// Market of older Views. Long work of a Book can be cut into pieces (Paced) between which others are answered.
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
// The rules carry the ids of the decisions register (docs/decisions.md). What that register left open was decided here; X19 to X21 are decisions of
// engine/account:
//
//   - X1: when all offers of a quote have expired, the one that expired last stays published, as stale (S11, E4).
//   - X2: two current offers of equal precedence: the one checked last is published, then the smaller source id.
//   - X3: the history row of a day belongs to the source with the best precedence that spoke that day; among its own words the last
//     one counts (T5). A row whose manual source is withdrawn gives way to the next observation.
//   - X4: an observation older than what its source has said since is a backfill: it may fill or correct history, never the offer.
//   - X5: an implausible value (jump, off_market) is believed when the source's next answer, within seven days, repeats it within a
//     fifth of the jump limit and another institution, by another source, stands within the jump limit of it, be it fresh or
//     suspected as well.
//   - X6: the last good value is a measure for seven days; the median needs five fresh commercial quotes of that side. What others say
//     of a quote counts before what the judged source says of it: a list is not its own measure.
//   - X7: only a complete answer of a source can be thin (I3); a file of observations or a manual rate is none.
//   - X8: a value that changes its text but not its number (59.30, 59.3) is published as written and keeps collectedAt (T4, S9).
//   - X9: history keeps commercial rows for five years by default and reference rows for good; the newest day counts, not the
//     clock, so that a replay forgets the same days.
//   - X10: the same refused observation is kept once, however often a file is read; a book keeps the newest 4,096.
//   - X11: an observation more than five minutes in the future is refused, as is one that answers a slot of the future.
//   - X12: a released observation skips bands and limits, but never a zero, negative, unreadable or crossed side.
//   - X13: a side that begins with a zero and another digit (057.5) is unreadable: it is more likely to lack a digit than to be meant.
//   - X14: a commercial quote with equal sides is one side that was read twice (same_sides); an operator may release it. So is a
//     reference of a source whose bound says that its sides differ.
//   - X15: a source whose last offer of a quote has a date that has come can't offer one of an earlier date (outdated). A backfill can.
//   - X16: a source is heard once for a slot of the schedule, and never again for an earlier one, even when it says nothing new. A
//     slot is done when every currency that the answer spoke of has heard of it.
//   - X17: bands and the jump limit may differ by source, currency and effective date: the bound with the earliest end that is not
//     before the date counts, what it leaves open is as usual. Confirmation (X5) goes by the usual jump limit.
//   - X18: a side that comes alone and stands nearer to the other side of the source's last good value than to its own, or crosses it, is
//     a jump: it may be that side, shown in the wrong place.
package engine
