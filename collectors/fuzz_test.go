package collectors

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// checkAccount reads a file to its end and wants each of its lines accounted for; and what was read, written and read
// again must be the same.
func checkAccount(t *testing.T, data []byte, format Format) {
	r, err := OpenObservations(bytes.NewReader(data), "x", format)
	if err != nil {
		return
	}
	header := r.Lines()
	all, err := readAll(r)
	if err != nil {
		t.Fatalf("a stream that did not break gave %v", err)
	}
	lines := strings.Split(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if fault := account(lines, header, all); fault != "" {
		t.Fatal(fault)
	}
	if r.Lines() != len(lines) || r.Bytes() != int64(len(data)) {
		t.Fatalf("%d lines and %d bytes counted of %d and %d", r.Lines(), r.Bytes(), len(lines), len(data))
	}
	checkWritten(t, all.rows, format)
}

// account wants every line after the header to be blank, or one observation, or one error, each of these in order. It
// names the first fault, "" when there is none.
func account(lines []string, header int, all contents) string {
	lastRow, lastError, used := 0, 0, map[int]bool{}
	for _, row := range all.rows {
		if row.Line <= lastRow {
			return fmt.Sprintf("line %d comes after line %d", row.Line, lastRow)
		}
		lastRow, used[row.Line] = row.Line, true
	}
	for _, problem := range all.problems {
		if problem.Line <= lastError || used[problem.Line] || problem.Found == "" || problem.Want == "" {
			return fmt.Sprintf("bad error %+v after line %d", problem, lastError)
		}
		lastError, used[problem.Line] = problem.Line, true
	}
	for i, line := range lines {
		if i == 0 {
			line = strings.TrimPrefix(line, byteOrderMark)
		}
		isBlank := strings.Trim(strings.TrimSuffix(line, "\r"), " \t") == ""
		if i >= header && used[i+1] == isBlank {
			return fmt.Sprintf("line %d, %q, was lost or invented", i+1, line)
		}
	}
	return ""
}

// TestAccountControl plants the faults that account is there for.
func TestAccountControl(t *testing.T) {
	const good = "2025-01-02T12:00:00Z,popular,USD,,,58,60,a,,"
	lines := []string{columns, good, "broken", "", good}
	all := readText(t, strings.Join(lines, "\n"), "x.csv")
	if fault := account(lines, 1, all); fault != "" {
		t.Errorf("a file in order is called faulty: %s", fault)
	}
	faulty := map[string]contents{
		"a lost observation": {rows: all.rows[1:], problems: all.problems},
		"a lost error":       {rows: all.rows},
		"an error twice":     {rows: all.rows, problems: append(all.problems, all.problems...)},
		"both":               {rows: all.rows, problems: []LineError{{Line: 2, Found: "x", Want: "y"}, all.problems[0]}},
		"a disorder":         {rows: []Observation{all.rows[1], all.rows[0]}, problems: all.problems},
		"an invention":       {rows: []Observation{all.rows[0], {Line: 4}, all.rows[1]}, problems: all.problems},
	}
	for name, contents := range faulty {
		if account(lines, 1, contents) == "" {
			t.Errorf("%s was not noticed", name)
		}
	}
}

func checkWritten(t *testing.T, rows []Observation, format Format) {
	var out strings.Builder
	w, err := NewWriter(&out, format)
	for _, row := range rows {
		err = errors.Join(err, w.Write(row))
	}
	if err = errors.Join(err, w.Flush()); err != nil {
		t.Fatalf("what was read is not written: %v", err)
	}
	again := readText(t, out.String(), "x."+string(format))
	if len(again.rows) != len(rows) {
		t.Fatalf("%d observations of %d came back: %v", len(again.rows), len(rows), again.problems)
	}
	for i, row := range again.rows {
		if row.Line = rows[i].Line; row != rows[i] {
			t.Fatalf("wrote %+v, read %+v", rows[i], row)
		}
	}
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte(header + "2025-05-17T13:29:03Z,popular,USD,unspecified,commercial,58,60.5,infodolar,,\n"))
	f.Add([]byte(header + "2025-05-17T13:29:03Z,\"po\"\"p\",USD,,,58,,x,2025-01-01,2025-05-17T13:29:03.5-04:00\r\n\r\nx"))
	f.Add([]byte("\uFEFFsell,buy" + header + "\x00\n\xff,\n\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkAccount(t, data, CSV)
		checkAccount(t, append([]byte(header), data...), CSV)
	})
}

func FuzzNDJSON(f *testing.F) {
	f.Add([]byte(`{"observedAt":"2025-05-17T13:29:03Z","institutionId":"p","currency":"USD","buy":"58","sell":null,"sourceId":"a"}`))
	f.Add([]byte("{\"buy\":58}\n[]\n{\"buy\":\"1\",\"buy\":\"2\"}\r\n{}{}\n\n{\"x\":\"\\ud800\"}"))
	f.Add([]byte("\uFEFF{\"observedAt\":\"\"}\n\xff\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) { checkAccount(t, data, NDJSON) })
}
