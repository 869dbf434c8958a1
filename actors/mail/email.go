package mail

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	netmail "net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/tasard/tasard/engine/account"
)

// ErrInvalidMail is what Send answers to a letter without address or whose code is not CodeDigits digits.
var ErrInvalidMail = errors.New("letter without address or code")

// The words of a letter. Nothing of them depends on who asked or for whom; $CODE stands for the code.
const (
	subject = "Su código de tasard / Your tasard code"

	plainText = `Su código para entrar en tasard:

    $CODE

Vence a los diez minutos de haberse pedido y sirve una sola vez. No lo comparta con nadie.

Alguien lo pidió para esta dirección de correo. Si no fue usted, no tiene que hacer nada: sin el código nadie puede entrar.

--------

Your code to sign in to tasard:

    $CODE

It expires ten minutes after it was asked for and works once. Share it with nobody.

Someone asked for it for this e-mail address. If it was not you, there is nothing you need to do: without the code nobody can sign in.

tasard
`

	htmlText = `<!DOCTYPE html>
<html lang="es">
<head><meta charset="utf-8"><title>tasard</title></head>
<body>
<p>Su código para entrar en tasard:</p>
<p><strong style="font-family:monospace;font-size:1.6em">$CODE</strong></p>
<p>Vence a los diez minutos de haberse pedido y sirve una sola vez. No lo comparta con nadie.</p>
<p>Alguien lo pidió para esta dirección de correo. Si no fue usted, no tiene que hacer nada: sin el código nadie puede entrar.</p>
<hr>
<div lang="en">
<p>Your code to sign in to tasard:</p>
<p><strong style="font-family:monospace;font-size:1.6em">$CODE</strong></p>
<p>It expires ten minutes after it was asked for and works once. Share it with nobody.</p>
<p>Someone asked for it for this e-mail address. If it was not you, there is nothing you need to do: without the code nobody can sign in.</p>
</div>
<p>tasard</p>
</body>
</html>
`
)

// id is what one letter keeps over all its tries.
type messageID struct {
	id       string // of the Message-ID, before the at sign
	boundary string // between the parts
	date     time.Time
}

const idBytes = 16 // 128 bits each: no two letters alike, no boundary that the text could hold

func newMessageID(random io.Reader, date time.Time) (messageID, error) {
	var raw [2 * idBytes]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return messageID{}, fmt.Errorf("make a Message-ID: %w", err)
	}
	return messageID{id: hex.EncodeToString(raw[:idBytes]), boundary: hex.EncodeToString(raw[idBytes:]), date: date}, nil
}

// checkMail keeps out of the text whatever is not a code.
func checkMail(letter account.LoginMail) error {
	code := letter.Code.Reveal()
	if letter.To.IsZero() || len(code) != account.CodeDigits || strings.Trim(code, "0123456789") != "" {
		return ErrInvalidMail
	}
	return nil
}

// compose makes the message. The addresses go in as values: the library's parser takes and changes more than account.Email allows.
func compose(letter account.LoginMail, stamp messageID, config Config) *gomail.Msg {
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent(), gomail.WithEncoding(gomail.EncodingQP), gomail.WithBoundary(stamp.boundary))
	m.SetAddrHeaderFromMailAddress(gomail.HeaderFrom, &netmail.Address{Name: "tasard", Address: config.From.String()})
	m.SetAddrHeaderFromMailAddress(gomail.HeaderTo, &netmail.Address{Address: letter.To.String()})
	m.Subject(subject)
	m.SetDateWithValue(stamp.date.UTC())
	m.SetMessageIDWithValue(stamp.id + "@" + config.domain())
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no vacation notice answers it
	m.SetGenHeader("Content-Language", "es, en")
	code := letter.Code.Reveal()
	m.SetBodyString(gomail.TypeTextPlain, strings.ReplaceAll(plainText, "$CODE", code))
	m.AddAlternativeString(gomail.TypeTextHTML, strings.ReplaceAll(htmlText, "$CODE", code))
	return m
}
