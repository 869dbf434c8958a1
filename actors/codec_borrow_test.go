package actors

import (
	"maps"
	"reflect"
	"testing"
)

// allSampleEvents are those of currencies and all others.
func allSampleEvents(t testing.TB) map[string]any {
	all := sampleTenantEvents(t)
	for name, event := range sampleEvents() {
		all[name] = event
	}
	return all
}

// spoiled decodes a record and then writes over its bytes, as the log does with the next record.
func spoiled(t *testing.T, d *decoder, event any) any {
	t.Helper()
	record, err := encodeEvent(event)
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.decodeEvent(record)
	if err != nil {
		t.Fatal(err)
	}
	for i := range record {
		record[i] = '?'
	}
	return got
}

// What is decoded lives longer than the bytes that it was read from.
func TestEventsOwnTheirBytes(t *testing.T) {
	d := newDecoder()
	for range 2 { // the second time with texts that are known
		for name, event := range allSampleEvents(t) {
			if got := spoiled(t, d, event); !reflect.DeepEqual(got, event) {
				t.Errorf("%s: %+v, want %+v", name, got, event)
			}
		}
	}
}

// The same check sees a text that is borrowed.
func TestEventsOwnTheirBytes_Control(t *testing.T) {
	d := newDecoder()
	d.borrow = true
	seen := 0
	for _, event := range allSampleEvents(t) {
		if !reflect.DeepEqual(spoiled(t, d, event), event) {
			seen++
		}
	}
	if seen == 0 {
		t.Error("borrowed texts are not seen")
	}
}

// Events of one room stand side by side until it is emptied, whatever was in it before.
func TestEventsOfARoom(t *testing.T) {
	d := newDecoder()
	d.room = &eventRoom{}
	all := allSampleEvents(t)
	for round := range 3 {
		d.room.empty()
		decoded := map[string]any{}
		for i := range replayBatch {
			for name := range all {
				decoded[name+string(rune('a'+i%26))] = spoiled(t, d, all[name])
			}
		}
		for name, got := range decoded {
			if want := all[name[:len(name)-1]]; !reflect.DeepEqual(got, want) {
				t.Fatalf("round %d, %s: %+v, want %+v", round, name, got, want)
			}
		}
	}
}

// Texts are found again, also beyond those that were found a moment ago, and more than are kept are copied.
func TestKnownTexts(t *testing.T) {
	known := newTexts()
	words := map[string]string{}
	for i := range 2 * recentTexts {
		word := string([]byte{'a' + byte(i%26), 'a' + byte(i/26%26), 'a' + byte(i/676)})
		words[word] = known.find(word).text
	}
	for word := range maps.Keys(words) {
		bytes := []byte(word)
		found := known.find(string(bytes))
		if found.text != word || found != known.find(word) {
			t.Fatalf("%q is found as %q", word, found.text)
		}
	}
	for i := range textsMax + 100 {
		word := string([]byte{byte(i), byte(i >> 8), byte(i >> 16), '#'})
		if got := known.find(word).text; got != word {
			t.Fatalf("%q is found as %q", word, got)
		}
	}
	if len(known.all) != textsMax {
		t.Errorf("%d texts are kept", len(known.all))
	}
}
