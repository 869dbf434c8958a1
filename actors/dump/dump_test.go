package dump

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goldenRecords is records of every kind, by name.
func goldenRecords(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../internal/record/testdata/golden-records/*.hex")
	if err != nil || len(files) < 27 {
		t.Fatal(files, err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "v1-"), ".hex")
		if all[name], err = hex.DecodeString(strings.TrimSpace(string(text))); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestS5_DescriptionsAreMasked: a line has a masked address and the beginnings of digests.
func TestS5_DescriptionsAreMasked(t *testing.T) {
	const masked = `"email":"a…@….com"`
	digest := sha256.Sum256(binary.BigEndian.AppendUint64(nil, 7)) // as in the golden records
	for name, record := range goldenRecords(t) {
		line, err := Record(record)
		word, _, _ := strings.Cut(name, "-")
		if err != nil || !strings.Contains(line, `"event":"`+word+`"`) || strings.Contains(line, "\n") {
			t.Errorf("%s: %s, %v", name, line, err)
		}
		if strings.Contains(line, "ana.perez") || strings.Contains(line, hex.EncodeToString(digest[:8])) {
			t.Errorf("%s shows a secret", line)
		}
		if strings.Contains(line, `"email"`) && !strings.Contains(line, masked) {
			t.Errorf("%s: %s does not show %s", name, line, masked)
		}
	}
}

func TestDescribeRecord(t *testing.T) {
	all := goldenRecords(t)
	line, err := Record(all["withdrawn"])
	want := `{"at":"2026-06-17T16:00:00Z","by":"ana","channel":"branch","currency":"USD","event":"withdrawn","institution":"popular",` +
		`"kind":"commercial","sourceId":"manual"}`
	if err != nil || line != want {
		t.Errorf("%s, %v\nwant %s", line, err, want)
	}
	for _, want := range []string{`"slot":"2026-06-17T15:59:00.000000007Z"`, `"document":"` + strings.Repeat("5e", 32) + `"`, `"reason":"same_sides"`} {
		if line, err := Record(all["refreshed-slot"]); err != nil || !strings.Contains(line, want) {
			t.Errorf("%s, %v lacks %s", line, err, want)
		}
	}
	if _, err := Record([]byte{0xff}); err == nil {
		t.Error("garbage is described")
	}
}
