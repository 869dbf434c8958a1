package cmd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/tasard/tasard/collectors/simulated"
)

// simulate leads the program to simulated institutions at their real addresses, over HTTPS; they end with it.
func (p *commands) simulate(wish string) {
	words := strings.Split(wish, ",")
	seed, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		panic(err)
	}
	market := simulated.NewMarket(seed)
	market.Step(p.Clock())
	site := simulated.NewSite(market)
	for _, word := range words[1:] {
		id, fault, _ := strings.Cut(word, "=")
		if err := site.SetFault(id, simulated.Fault(fault)); err != nil {
			panic(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	signer := newAuthority()
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		certificate := signer.newCertificate(func(server *x509.Certificate) { server.DNSNames = []string{hello.ServerName} })
		return &certificate, nil
	}}
	go func() {
		_ = (&http.Server{Handler: site, ReadHeaderTimeout: patience}).Serve(tls.NewListener(listener, config))
	}()
	p.Roots = x509.NewCertPool()
	p.Roots.AppendCertsFromPEM([]byte(signer.pem))
	p.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, listener.Addr().String())
	}
}
