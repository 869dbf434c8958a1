// Package account is every rule about callers: accounts, their keys, login codes and sessions, and how many requests each may still make.
// Like package engine it starts nothing, stores nothing and reads no clock: instants come in as arguments, facts go out as events.
//
// # Where to begin
//
// Admitter, Service and Operator are the contract between package actors, which holds the state, and its callers: a front end admits a
// request, an owner makes and revokes keys, an operator suspends and limits.
//
// An Account has keys, a window of the day and a window of the minute. Registry holds e-mail addresses, pending codes and sessions.
// Both change as an engine.CurrencyState does: a decision gives events, their owner makes them durable, Apply changes the state, and does the same at
// recovery. AnonymousTable counts requests without a key by client address, in memory only. KeyPolicy is the announced end of those.
//
//	service.go                          the contract
//	account.go, states.go, aside.go     an account, and its state in a snapshot or while it is idle
//	admission.go, quota.go              what is admitted: both windows
//	lease.go                            how much of the day's quota may be spent without another record in the log
//	shares.go, purse.go                 the same on several nodes at once
//	registry.go, registry_*.go          who may log in; the same on several nodes
//	clients.go, tally.go, strangers.go  limits of a client address
//	email.go, secret.go                 addresses, keys, tokens and codes, and what is kept of them
//	transition.go                       the announcement that keys are required
//
// In a cluster ApplyRemote takes what another node decided, with the moment at which it arrived. A decision of this node that is still on its
// way into the log was then made too early: it is void, and made again.
//
// # Secrets
//
// Keys, tokens and codes are never kept: a Digest of them is, or a seal. A Secret prints as [redacted].
//
// # Decisions
//
// Comments name decisions by id (L1, K2, X19): docs/decisions.md says each in a sentence, with the test that holds it.
package account
