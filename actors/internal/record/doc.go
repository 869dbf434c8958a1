// Package record is what the log and its snapshots look like: it writes events and states as bytes and reads them back. It starts
// nothing, keeps nothing, and knows neither files nor actors.
//
// # The format
//
// Records are messages in protobuf's wire format: fields with a number, in the order of their numbers; what is zero or empty is left out.
// Each message is told by one function, which names its fields once and both writes and reads them (coder.go has the bytes, values.go the
// kinds of fields):
//
//	func (c *coder) keyUse(u *account.KeyUse) {
//		c.own(1, &u.KeyID)
//		c.instant(2, &u.At)
//	}
//
//	08 2a                      field 1, a number: 42
//	12 03 55 53 44             field 2, three bytes: "USD"
//	1a 05 …                    field 3, a message of five bytes
//
//	record      1 the version that a reader must know, and one event by its kind (record.go)
//	bundle      what one node of several has written at once: its records
//	snapshot    parts, each behind its length: pieces of books, of accounts, of the registry; the last one has their number (snapshot.go)
//	instant     two fields: seconds since 0001-01-01T00:00:00Z, and the nanoseconds within; both absent is none
//	date        days from 1, which is 0001-01-01; 0 is none
//	decimal     the text that was published, verbatim; "" is null
//	word        of a closed list: its code
//
// Old logs stay readable for ever: never change the number or the meaning of a field, only add new ones, and a golden record with them
// (testdata). Numbers that were given are never given again.
//
// # What is read
//
// Fields that this build does not know are passed over, so that a newer program may add some. What must not be passed over raises the
// version that a reader must know: that, an event of an unknown kind and an unknown word are ErrUnknown. Fields may come in any order; of
// one that is there twice the last one counts, as in protobuf, but each is checked. Values are checked as they are read: dates, counts,
// digests, decimals. The first error ends reading and says which field, at which byte. Texts are not checked for UTF-8: a source's text
// may be cut within a character.
package record
