// Package mailbox runs actors. An actor is a value whose methods run one at a time. Other code reaches an actor only
// through messages. Package mailbox is built on the library protoactor-go, which no other package imports.
//
// System.Spawn starts an Actor and returns its Ref. Callers send messages to the Ref. There are two kinds of messages:
// a Request gets an answer, for which its caller waits; a message that embeds OneWay gets none.
//
//	caller      RequestPool.Ask     takes a request from the pool
//	Ref.Send    actor idle:         the caller's goroutine runs the actor; nothing is allocated
//	            actor running:      the request is queued
//	            queue full:         the request is rejected with ErrOverloaded
//	actor       Actor.Receive       calls Request.Reply, or sends the request to another actor
//	caller      gets the answer     the request goes back to the pool
//
// A request ends exactly once: with a reply, with an error (full queue, panic, actor stopped), or at the caller's
// deadline. An actor does not receive a request after its deadline. Receive must not block, and must not wait for
// another actor.
//
// A one-way message is never rejected while its actor exists. Senders limit the number of their unhandled one-way
// messages, and each queue reserves room for that number (Kind.Reserve). If a queue is full anyway, the node stops.
//
// The dispatcher's worker goroutines handle one-way messages, so that the sender does not do another actor's work. A
// worker also takes over after a caller has handled 64 messages of other callers.
//
// An actor receives the messages of one sender in the order in which they were sent.
//
// protoactor runs the spawned actors: Ref is the mailbox of a PID (protoactor's actor address) and passes each message
// to protoactor's invoker, which calls Receive. This costs 6 ns and about 220 instructions a message, or 2 to 3 % of
// the CPU time of an HTTP request without a key: 430 of 13,600 instructions (bench -goals F1). System.Init starts an
// actor without protoactor. Accounts use it, because registration takes more memory than an account.
//
// RequestPool.AskAny asks one of several actors that give the same answer.
//
// # Failures
//
// After a panic in a message that changes nothing (Actor.FailsNode is false), the request gets an internal error and
// the actor keeps its state. After any other panic the node stops (Config.Fail), and the actor rejects all its open
// requests with the error from Config.Failed. A failed actor is never restarted with empty state: Ref.deliver recovers
// the panic before protoactor's supervisor sees it.
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
