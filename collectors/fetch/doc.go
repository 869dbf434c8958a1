// Package fetch gets the documents that definitions ask for, over net/http, with manners: one request a host at a time, robots.txt,
// an honest name, few and patient retries, conditional requests. It reads nothing out of a document and stores nothing on disk.
//
// # Promises
//
//   - Bounded: a request takes at most RequestMax, a Fetch with everything in it at most BudgetMax. An answer of any size, packed
//     or not, costs at most 16 MiB of memory.
//   - A document is whole: a body that breaks off, or is shorter than its header says, is a failure and no document.
//   - Certificates are always verified. What leads to another site, or from https to http, is not followed.
//   - Nobody goes around a bot wall or robots.txt: Blocked is a result.
//   - Every error is a *source.Failure.
package fetch
