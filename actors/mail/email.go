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

// ErrInvalidMail means that an email has no address, or that its code does not consist of CodeDigits digits.
var ErrInvalidMail = errors.New("email without an address or code")

// The text of the email. compose replaces $CODE by the code.
const (
	subject = "Su código de tasard / Your tasard code"

	plainText = `Su código para entrar en tasard:

    $CODE

Vence a los diez minutos de haberse pedido y sirve una sola vez. No lo comparta con nadie.

Alguien lo pidió para esta dirección de correo. Si no fue usted, no tiene que hacer nada: sin el código nadie puede entrar.

--------

Your code to sign in to tasard:

    $CODE

It expires ten minutes after it was asked for and works once. Do not share it.

Someone asked for it for this e-mail address. If it was not you, there is nothing you need to do: no one can sign in without the code.

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
<p>It expires ten minutes after it was asked for and works once. Do not share it.</p>
<p>Someone asked for it for this e-mail address. If it was not you, there is nothing you need to do: no one can sign in without the code.</p>
</div>
<p>tasard</p>
</body>
</html>
`
)

func checkMail(mail account.LoginMail) error {
	code := mail.Code.Reveal()
	if mail.To.IsZero() || len(code) != account.CodeDigits || strings.Trim(code, "0123456789") != "" {
		return ErrInvalidMail
	}
	return nil
}

// compose builds the message that the library go-mail sends. It sets the addresses without the parser of go-mail,
// because that parser accepts more addresses than account.ParseEmail.
func compose(mail account.LoginMail, date time.Time, config Config) (*gomail.Msg, error) {
	var random [16]byte
	if _, err := io.ReadFull(config.Random, random[:]); err != nil {
		return nil, fmt.Errorf("make a Message-ID: %w", err)
	}
	id := hex.EncodeToString(random[:])
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent(), gomail.WithEncoding(gomail.EncodingQP), gomail.WithBoundary(id))
	m.SetAddrHeaderFromMailAddress(gomail.HeaderFrom, &netmail.Address{Name: "tasard", Address: config.From.String()})
	m.SetAddrHeaderFromMailAddress(gomail.HeaderTo, &netmail.Address{Address: mail.To.String()})
	m.Subject(subject)
	m.SetDateWithValue(date.UTC())
	m.SetMessageIDWithValue(id + "@" + config.domain())
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: prevents vacation notices
	m.SetGenHeader("Content-Language", "es, en")
	code := mail.Code.Reveal()
	m.SetBodyString(gomail.TypeTextPlain, strings.ReplaceAll(plainText, "$CODE", code))
	m.AddAlternativeString(gomail.TypeTextHTML, strings.ReplaceAll(htmlText, "$CODE", code))
	return m, nil
}
