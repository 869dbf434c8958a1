package httpapi

import (
	"strconv"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/params"
)

const (
	internalMessage  = "Something went wrong on our side. Report the request id if it goes on."
	malformedMessage = "The request is not well-formed HTTP/1.1. The connection is closed."
	timeoutMessage   = "The request did not arrive in time. The connection is closed."
	headersMessage   = "Request line and headers are too long. The connection is closed."
	bodyMessage      = "The request body is too long. The connection is closed."
	chunkedMessage   = "Transfer-Encoding is not understood here: send a body with Content-Length. The connection is closed."
)

func appendError(dst []byte, code engine.Code, message, requestID string, details []params.Problem) []byte {
	dst = append(dst, `{"error":{`...)
	dst = encode.Field(dst, "code", string(code))
	dst = encode.Field(dst, "message", message)
	dst = encode.Field(dst, "requestId", requestID)
	if len(details) > 0 {
		dst = append(encode.Name(dst, "details"), '[')
		for _, d := range details {
			dst = append(encode.Comma(dst), `{"path":[`...)
			dst = encode.Text(dst, d.Name)
			if d.Index > 0 {
				dst = strconv.AppendInt(append(dst, ','), int64(d.Index), 10)
			}
			dst = append(dst, ']')
			dst = encode.Field(dst, "message", d.Name+" "+d.Message)
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, `}}`...)
}
