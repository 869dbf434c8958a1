//go:build faults

package faults

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fixtures are the directories that releases left, by their names in testdata, one for each format: the data directory of a node that was
// stopped, started again and killed, two accounts with keys, of which one is suspended, and what a node on it answered. They stay for ever.
func fixtures() []string { return []string{"directory-v1"} }

// keptKeys are the keys of a fixture: worthless anywhere else.
type keptKeys struct{ Active, Revoked, Suspended string }

// goldenAnswers are what the program says of a directory, but for what depends on the moment.
func goldenAnswers(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	exported := run(t, "export", "--data", copied(t, dir), "--what", "all")
	if exported.code != 0 {
		t.Fatalf("export: %s", exported.output)
	}
	all["export.csv"] = []byte(exported.output)
	n := start(t, copied(t, dir))
	defer n.kill()
	for name, path := range map[string]string{
		"rates.json":   "/v1/rates?limit=200",
		"history.json": "/v1/rates/history?from=2026-06-01&to=2026-06-30&limit=200",
	} {
		all[name] = withoutMoment(t, []byte(n.mustGet(path)))
	}
	got, err := n.admin().do(http.MethodGet, "http://node/accounts", "", nil)
	if err != nil || !got.good() {
		t.Fatalf("accounts: %d, %v", got.status, err)
	}
	all["accounts.json"] = withoutMoment(t, got.body)
	return all
}

// keptFields are those of an answer that come from the log: others come from the catalogue, which may change, or from the
// moment at which the answer is made.
func keptFields() []string {
	return []string{
		"data", "id", "institutionId", "currency", "channel", "kind", "buy", "sell", "sourceId", "date", "effectiveDate",
		"collectedAt", "lastCheckedAt", "email", "createdAt", "activeKeys", "suspended",
	}
}

// withoutMoment indents an answer and leaves out all but keptFields.
func withoutMoment(t *testing.T, text []byte) []byte {
	t.Helper()
	var value []any // one, or one a line
	for decoder := json.NewDecoder(bytes.NewReader(text)); decoder.More(); {
		var one any
		if err := decoder.Decode(&one); err != nil {
			t.Fatal(err)
		}
		value = append(value, one)
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			maps.DeleteFunc(v, func(name string, _ any) bool { return !slices.Contains(keptFields(), name) })
			for _, inner := range v {
				strip(inner)
			}
		case []any:
			for _, inner := range v {
				strip(inner)
			}
		}
	}
	strip(any(value))
	indented, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(indented, '\n')
}

// TestFaultsW11_KeptDirectory opens whole directories that earlier releases wrote, log, snapshot and mark, and holds the
// answers against those of then.
func TestFaultsW11_KeptDirectory(t *testing.T) {
	for _, name := range fixtures() {
		fixture := filepath.Join("testdata", name)
		data := filepath.Join(fixture, "data")
		verified := run(t, "log", "verify", "--data", copied(t, data))
		if verified.code != 0 || !strings.Contains(verified.output, "The log is whole.") {
			t.Errorf("verify: %d %s", verified.code, verified.output)
		}
		answers := goldenAnswers(t, data)
		for file, got := range answers {
			want, err := os.ReadFile(filepath.Join(fixture, file))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("%s of %s is another one:\n%s\nwant\n%s", file, name, got, want)
			}
		}
		keysOf(t, fixture, data)
		left := readDir(t, data)
		figure(t, "%s: %d files, %d bytes of answers as they were, keys as they were", name, len(left), len(answers["export.csv"])+len(answers["rates.json"]))
		if len(segments(left)) == 0 || left["mark"] == nil || len(left) < 3 {
			t.Errorf("%s has %d files", name, len(left))
		}
	}
}

// keysOf wants the keys of a fixture to be good or refused as they were.
func keysOf(t *testing.T, fixture, data string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(fixture, "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	var keys keptKeys
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	n, c := start(t, copied(t, data)), newCaller("")
	defer c.close()
	defer n.kill()
	for key, want := range map[string]string{keys.Active: "", keys.Revoked: "revoked_key", keys.Suspended: "account_suspended"} {
		got, err := c.do(http.MethodGet, n.url+"/v1/account/usage", key, nil)
		if err != nil || got.code != want {
			t.Errorf("a key of %s: status %d %s, want %q, %v", fixture, got.status, got.code, want, err)
		}
	}
}

// newer makes a whole file of the next format version of a segment, a snapshot or a mark.
func newer(name string, data []byte) []byte {
	data = slices.Clone(data)
	sum := func(end int) uint32 { return crc32.Checksum(data[:end], crc32.MakeTable(crc32.Castagnoli)) }
	switch {
	case name == "mark":
		for slot := range 2 {
			b := data[slot*512:]
			b[4]++
			binary.LittleEndian.PutUint32(b[508:], crc32.Checksum(b[:508], crc32.MakeTable(crc32.Castagnoli)))
		}
	case strings.HasPrefix(name, "snapshot-"):
		data[4]++
		binary.LittleEndian.PutUint32(data[16:], sum(16))
	default:
		_, prefix := binary.Uvarint(data)
		b := data[prefix:]
		b[4]++
		binary.LittleEndian.PutUint32(b[36:], crc32.Checksum(b[:36], crc32.MakeTable(crc32.Castagnoli)))
	}
	return data
}

// TestFaultsW11_NewerDirectory has the program meet a directory of a newer one: it says so, and changes nothing.
func TestFaultsW11_NewerDirectory(t *testing.T) {
	left := readDir(t, filepath.Join("testdata", fixtures()[0], "data"))
	refused := 0
	for name := range left {
		if len(left[name]) == 0 {
			continue
		}
		dir := filepath.Join(t.TempDir(), "data")
		changed := maps.Clone(left)
		changed[name] = newer(name, left[name])
		putDir(t, dir, changed)
		got := run(t, serveArgs(dir)...)
		want := fmt.Sprintf("%s has format version 2, this program knows up to 1; run the newer program on this directory", filepath.Join(dir, name))
		if got.code != exitBadData || !strings.Contains(got.output, want) || strings.Count(strings.TrimSpace(got.output), "\n") > 0 {
			t.Errorf("%s: exit code %d: %s", name, got.code, got.output)
		}
		if hashOf(readDir(t, dir)) != hashOf(changed) {
			t.Errorf("%s: the directory is another one", name)
		}
		refused++
	}
	figure(t, "%d directories with a file of a newer format refused with 78, nothing changed", refused)
	if refused < 3 {
		t.Errorf("%d files", refused)
	}
}
