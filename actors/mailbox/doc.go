// Package mailbox runs actors: values whose methods run one at a time and are reached only by messages. No other
// package uses protoactor.
//
// A System spawns an Actor and returns its Ref. There are two kinds of messages. A Question has room for its answer
// and a caller that waits for it; an Asker keeps a pool of them. A struct that embeds OneWay needs no answer.
//
//	caller      Asker.Ask                    a question from the pool
//	Ref.Send    idle:  the caller runs the actor; nothing is allocated, no other goroutine runs
//	            busy:  the question is queued
//	            full:  it is answered ErrOverloaded
//	actor       Receive, Question.Reply      or: it sends the question on to another actor
//	caller      the answer                   the question goes back to the pool
//
// A question ends exactly once: with its reply, a full mailbox, a panic, the stop of the actor, or the deadline of its
// caller. An abandoned question is skipped. An actor never waits: it must not block or ask.
//
// One-way messages are never refused. Their senders bound how many are under way, room is reserved for them
// (Kind.Reserve), and one that finds no room stops the node. Workers of the dispatcher handle them, so that no sender
// does another actor's work, and take over from callers that have handled 64 messages of others. Messages of one
// sender stay in order, whatever their kind.
//
// Several actors may give the same answer, one for each processor (Asker.AskAny). Actors that come and go are not
// registered with the library (System.Init); their owner takes the state of an idle one back with Ref.Retire.
//
// Long work runs beside the actor (Ref.StartJob), in a goroutine that yields to the network poller (package yield).
//
// # Failures
//
// A panic over a message that changes nothing (Actor.Fatal returns false) costs that question an internal error; the
// actor keeps its state. Any other panic stops the node (Config.Fail) and rejects everything that the actor keeps
// (Config.Failed). No actor is restarted with empty state. A stopped actor rejects all messages.
//
// # Parts of protoactor that are not used
//
// The library provides addresses, lifecycle and supervision. Not used, as measured: futures (twice the cost, a data
// race near the timeout), its mailboxes (unbounded, or dropping silently), restarts (they lose the state), receive
// timeouts (they lose messages and race), its logger, its dispatcher (a message through it costs a quarter of all
// requests a second). Its Stop drops queued messages silently, and its Shutdown stops no actor.
//
// Start with ref.go and question.go.
package mailbox
