// Package mailbox runs actors: values whose methods run one at a time and are reached by messages only. It is the one
// package that knows protoactor.
//
// A System spawns an Actor and returns its Ref. Messages are of two kinds. A Question carries room for its own answer
// and has a caller who waits; an Asker keeps a pool of them. A struct that embeds OneWay needs no answer.
//
//	caller      Asker.Ask                    a question from the pool
//	Ref.Send    idle:  the caller runs the actor itself: nothing is allocated, no goroutine is switched to
//	            busy:  the question is queued
//	            full:  it is answered ErrOverloaded at once
//	actor       Receive, Question.Reply      or: it sends the same question on to another actor
//	caller      the answer                   the question goes back to the pool
//
// A question ends exactly once: by its reply, a full mailbox, a panic, the stop of the actor, or the caller's deadline.
// Once it is abandoned it is not worked on any more. An actor never waits: it may neither block nor ask.
//
// A one-way message is never refused. Room is reserved for it (Kind.Reserve), its senders have a bounded number under
// way, and one that finds no room stops the node. It is handled by a worker of the dispatcher, so that no sender does
// another actor's work. Workers also take over from a caller that has served 64 messages of others. Messages of one
// sender stay in order, whatever their kind.
//
// Long work is done beside the actor (Ref.StartJob), on a goroutine that yields to the network poller (package yield).
//
// # Failures
//
// A panic over a message that changes nothing (Actor.Fatal is false) costs that question an internal error; the actor
// keeps its state. Any other panic stops the node (Config.Fail), and everything that the actor keeps is rejected
// (Config.Failed). No actor is ever started again with empty state. A stopped actor rejects all that is queued, and
// every later message.
//
// # What is not used of the library, measured
//
// protoactor gives addresses, lifecycle and supervision. Not used, each for a reason: futures (twice the cost, a data
// race near the timeout), its mailboxes (unbounded, or dropping silently), restarts (they forget the state), receive
// timeouts (they lose messages, and race), its logger (colour on the standard error output), its dispatcher (a message
// through it costs a quarter of all requests a second). Its Stop drops what is queued without a word, and its Shutdown
// stops no actor.
package mailbox
