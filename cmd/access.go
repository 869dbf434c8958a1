package cmd

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"github.com/tasard/tasard/httpapi"
)

// What --access-log may say.
const (
	accessOff    = "off"
	accessErrors = "errors"
	accessAll    = "all"
)

// accessLog writes a line of JSON for each answer, whatever the form of the other lines: such logs are for machines. nil for none. Danger:
// the caller waits until the line is written, so the output must take it.
func accessLog(out io.Writer, which string) (tell func(httpapi.Access), from int) {
	switch which {
	case accessErrors:
		from = http.StatusBadRequest
	case accessAll:
	default:
		return nil, 0
	}
	handler := slog.NewJSONHandler(out, &slog.HandlerOptions{ReplaceAttr: publicAttr})
	return func(a httpapi.Access) {
		record := slog.NewRecord(a.At, slog.LevelInfo, "access", 0)
		record.AddAttrs(
			slog.String("requestId", a.RequestID), slog.String("method", a.Method), slog.String("route", a.Route), slog.Int("status", a.Status),
			slog.Int64("micros", a.Duration.Microseconds()), slog.Int("bytes", a.Bytes), slog.Bool("keyed", a.Keyed), slog.String("network", a.Network),
		)
		_ = handler.Handle(context.Background(), record) // nobody is left to tell that the log can't be written
	}, from
}
