// Package mailbox runs actors: values whose methods run one at a time and are called only through messages. No other
// package uses protoactor.
//
// A System spawns an Actor and returns its Ref. There are two kinds of messages. A Request holds its answer, and its
// caller waits for it; an RequestPool keeps a pool of requests. A message that embeds OneWay needs no answer.
//
//	caller      RequestPool.Ask                    takes a request from the pool
//	Ref.Send    actor idle:    the caller runs the actor; nothing is allocated, no other goroutine runs
//	            actor busy:    the request is queued
//	            mailbox full:  the request is answered ErrOverloaded
//	actor       Receive                      calls Request.Reply, or sends the request to another actor
//	caller      gets the answer              the request goes back to the pool
//
// A request ends exactly once: with its reply, a full mailbox, a panic, the stop of the actor, or the deadline of its
// caller. An abandoned request is skipped. An actor must not block, and must not wait for an answer.
//
// One-way messages are never refused. Their senders bound how many are under way, and each mailbox reserves room for
// them (Kind.Reserve). A one-way message that finds no room stops the node. Workers of the dispatcher handle one-way
// messages, so that no sender does the work of another actor. Workers also take over from callers that have handled
// 64 messages of others. Messages of one sender stay in order.
//
// Several actors may give the same answer, one for each processor (RequestPool.AskAny). Short-lived actors are not
// registered with the library (System.Init). Their owner ends an idle actor, and gets its state, with Ref.Retire.
//
// Long work of an actor runs in another goroutine (Ref.StartJob), which yields to the network poller (package yield).
//
// # Failures
//
// After a panic over a message that changes nothing (Actor.Fatal returns false), the request is answered with an
// internal error, and the actor keeps its state. Any other panic stops the node (Config.Fail) and rejects all requests
// that the actor keeps (Config.Failed). No actor is restarted with empty state. A stopped actor rejects all messages.
//
// # Parts of protoactor that are not used
//
// The library provides addresses, lifecycle and supervision. These parts are not used, as measured:
//
//	futures           twice the cost, and a data race near the timeout
//	mailboxes         unbounded, or they drop messages silently
//	restarts          lose the state
//	receive timeouts  lose messages and race
//	dispatcher        a quarter fewer requests a second
//
// Its Stop drops queued messages silently, and its Shutdown stops no actor.
//
// Start with ref.go and request.go.
package mailbox
