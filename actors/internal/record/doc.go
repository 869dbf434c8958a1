// Package record encodes and decodes the events of the log, and snapshots of the state. It does not open files.
//
// # Terms of the events
//
//	slot          a scheduled time of fetching rates
//	baseline      the usual rates of a source
//	lease         a reserved part of an account's daily quota
//	grant         a record that gives the first lease of a day to many accounts
//	registry      the e-mail addresses, login codes and sessions
//	announcement  the date from which API keys are required
//
// # Format
//
// A record is a message in protobuf's wire format. Fields are written in the order of their numbers. Zero and empty
// values are omitted. Each message has one function for both writing and reading, which calls a method of codec for
// each field:
//
//	func keyUseFields(c *codec, u *account.KeyUse) {
//		c.text(1, &u.KeyID)
//		c.instant(2, &u.At)
//	}
//
//	08 2a                      field 1, a number: 42
//	12 03 55 53 44             field 2, three bytes: "USD"
//	1a 05 …                    field 3, a message of five bytes
//
//	record      field 1: required version (below); one other field: the event; its number is the kind of event
//	bundle      an event that contains all records of one write of a cluster node
//	snapshot    a list of parts, each after its length; a part is data of a currency, of accounts or of the registry
//	instant     two fields: seconds since 0001-01-01T00:00:00Z, and nanoseconds; both missing for the zero time.Time
//	date        number of days, 1 is 0001-01-01; 0 means no date
//	decimal     the source's text, unchanged; the empty text means null
//	enum        the index of the value in a list that never changes (codec.go)
//
// Logs of all earlier versions must stay readable. Therefore never change the number or the meaning of a field, and
// never reuse a number. Each new field or event needs an encoded example in testdata.
//
// # Reading
//
// The reader skips unknown fields. If an older program must not skip a field, the writer raises the required version of
// the record or part. A newer required version, an unknown event and an unknown enum value return ErrUnknown.
//
// Fields may come in any order. If a field occurs twice, both are validated and the second is used, as in protobuf. The
// protobuf library protowire reads and writes numbers and tags. Reading ends at the first error, which names the number
// and the position of the field. Texts need not be valid UTF-8, because a source's text may be cut inside a character.
//
// Start with record.go. codec.go has the wire format and the types of fields.
package record
