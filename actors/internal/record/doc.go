// Package record encodes and decodes the log's events and the snapshots of a node's state. It knows neither files nor
// actors.
//
// # Format
//
// Records are messages in protobuf's wire format: fields in the order of their numbers, zero and empty values omitted.
// One function per message names its fields and both writes and reads them (codec.go has the wire format, values.go the
// kinds of fields):
//
//	func (c *codec) keyUse(u *account.KeyUse) {
//		c.text(1, &u.KeyID)
//		c.instant(2, &u.At)
//	}
//
//	08 2a                      field 1, a number: 42
//	12 03 55 53 44             field 2, three bytes: "USD"
//	1a 05 …                    field 3, a message of five bytes
//
//	record      field 1: the version that a reader must know; then one event, in the field of its kind (record.go)
//	bundle      the records that one cluster node wrote at once
//	snapshot    a list of parts, each after its length: pieces of currencies, accounts, the registry (snapshot.go)
//	instant     two fields: seconds since 0001-01-01T00:00:00Z, and nanoseconds; both absent means none
//	date        days from 1, which is 0001-01-01; 0 means none
//	decimal     the published text, verbatim; "" is null
//	enum        the code of a value of a closed list
//
// Old logs stay readable forever: never change the number or the meaning of a field, and never reuse a number. A new
// field or event needs a golden record in testdata.
//
// # Reading
//
// Unknown fields are skipped. Content that older readers must not skip raises the required version; a newer version,
// an unknown kind of event and an unknown enum value are ErrUnknown. Fields may come in any order. The last of
// duplicate fields is used, as in protobuf, and all are validated. The first error ends reading and names the field
// and byte. Texts are not checked for UTF-8: a source's text may be cut inside a character.
package record
