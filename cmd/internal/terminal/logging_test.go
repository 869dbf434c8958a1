package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLogging_Lines(t *testing.T) {
	var out bytes.Buffer
	log := NewLogger(&out, LogOptions{Format: "text", Level: "info"})
	log = log.With("part", "wal").WithGroup("file").With("name", "a b")
	at := time.Date(2026, 6, 30, 11, 0, 0, 0, time.FixedZone("", -4*60*60))
	record := slog.NewRecord(at, slog.LevelWarn, "torn tail cut", 0)
	record.AddAttrs(slog.Int("bytes", 7), slog.Any("error", errors.New("x\ny")), slog.Time("when", at), slog.String("empty", ""),
		slog.Group("more", slog.String("Authorization", "Bearer abc"), slog.String("is", "é=")))
	if err := log.Handler().Handle(context.Background(), record); err != nil {
		t.Fatal(err)
	}
	log.Debug("not written")
	want := `time=2026-06-30T15:00:00.000Z level=WARN msg="torn tail cut" part=wal file.name="a b" file.bytes=7 file.error="x\ny" ` +
		`file.when=2026-06-30T15:00:00.000Z file.empty="" file.more.Authorization=(hidden) file.more.is="é="` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
}

func TestLogging_JSON(t *testing.T) {
	for _, format := range []string{"json", "auto"} { // a buffer is not a terminal
		var out bytes.Buffer
		NewLogger(&out, LogOptions{Format: format, Level: "error"}).Error("stopped", "token", "abc", "bytes", 7)
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v in %q", format, err, out.String())
		}
		if line["msg"] != "stopped" || line["level"] != "ERROR" || line["token"] != "(hidden)" {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}

// TestLogging_Codes wants the code of an error to be readable, and that of a login never.
func TestLogging_Codes(t *testing.T) {
	for value, want := range map[any]string{
		"invalid_code": "code=invalid_code", "": `code=""`, "01234567": "code=(hidden)", 1234567: "code=(hidden)", "word 01234567": "code=(hidden)",
	} {
		var out bytes.Buffer
		NewLogger(&out, LogOptions{Format: "text", Level: "info"}).Info("m", "code", value)
		if !strings.HasSuffix(out.String(), " msg=m "+want+"\n") {
			t.Errorf("%v: %s", value, out.String())
		}
	}
}
