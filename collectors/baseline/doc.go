// Package baseline learns what a source usually gives, and how often its prices change. A Baseline is made from runs:
// the quotes that were read from a source in one slot (scheduled time).
//
// A part is one side (buy or sell) of a quote. It is usual if it was in at least 90 % of the runs, of at least 21 and
// at most 64 runs. At three slots a day this is a week, and three weeks. A usual part is missing if the last 3 runs, a
// day, did not have it. After 64 runs without it the part is forgotten: it is usual no more. A new part is learnt in
// the same way, so that it raises no alarm.
//
// A run counts against a part only if every page that may have its currency was read. A failed page is another problem,
// which the health of the source shows.
//
// The prices of a source are frozen if none of them has changed for longer than ChangeLimit. That is twice the second
// longest of the last 64 spans between changes, in whole days, at least 7 and at most 30. A weekend with a holiday is
// thus part of a source's habits, but one long freeze is not. With fewer than 32 known changes it is 30 days.
//
// A Baseline changes nothing that is published. It is immutable. Encode and Decode turn it into text for the log.
package baseline
