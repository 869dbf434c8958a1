// Package mailbox runs actors. An actor is a value whose methods run one at a time. Other code reaches it only through
// messages. The package is built on the library protoactor-go, which no other package uses.
//
// System.Spawn starts an Actor and returns its Ref, to which messages are sent. There are two kinds of messages. A
// Request is a message with room for an answer, for which its caller waits. A message that embeds OneWay has no answer.
//
//	caller      RequestPool.Ask     takes a request from the pool
//	Ref.Send    actor idle:         the caller's goroutine runs the actor; nothing is allocated
//	            actor running:      the request is queued
//	            queue full:         the request is rejected with ErrOverloaded
//	actor       Actor.Receive       calls Request.Reply, or sends the request to another actor
//	caller      gets the answer     the request goes back to the pool
//
// A request ends exactly once: with a reply, with an error (full queue, panic, actor stopped), or at the deadline of
// its caller. An actor does not receive a request whose deadline has passed. Receive must not block, and must not wait
// for the answer of another actor.
//
// A one-way message is never rejected while its actor exists. Its senders limit how many are sent but not yet handled,
// and each queue reserves room for that number (Kind.Reserve). If a queue has no room all the same, the node stops.
//
// The dispatcher has worker goroutines. A worker handles one-way messages, so that their sender does not do the work
// of another actor. A worker also takes over when a caller has handled 64 messages of other callers.
//
// An actor receives the messages of one sender in the order in which they were sent.
//
// protoactor runs the actors that Spawn has started: Ref is the mailbox of a PID, gives each message to protoactor's
// invoker, and the invoker calls Receive. That costs 6 ns and some 220 instructions a message: 430 of the 13,600 of a
// request without a key, 2 to 3 % of its CPU time (bench -goals F1). System.Init makes an actor that protoactor does
// not know, for the accounts: a registration takes more memory than an account.
//
// RequestPool.AskAny asks one of several actors that give the same answer.
//
// # Failures
//
// If Receive panics over a message that changes nothing (not Actor.FailsNode), the request gets an internal error
// and the actor keeps its state. After any other panic the node stops (Config.Fail), and the actor rejects all requests
// that it keeps, with the error of Config.Failed. A failed actor is never restarted with empty state: protoactor's
// supervisor does not learn of it.
//
// # Parts of protoactor that are not used
//
// protoactor provides addresses, invocation and lifecycle. Measurements or tests ruled out these parts:
//
//	futures           cost twice as much, and have a data race near the timeout
//	mailboxes         are unbounded, or drop messages silently
//	supervision       restarts an actor, which loses its state
//	receive timeouts  lose messages, and have a data race
//	dispatcher        handles a quarter fewer requests per second
//
// protoactor's Stop drops queued messages silently, and protoactor's Shutdown stops no actor.
//
// Start with ref.go and request.go.
package mailbox
